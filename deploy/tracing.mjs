// Traces by OpenTelemetry, for whoever wants them; the service does not ship it. In its folder:
//
//   npm install --no-save @opentelemetry/sdk-node @opentelemetry/auto-instrumentations-node
//   OTEL_SERVICE_NAME=commodity-prices OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318 \
//     node_modules/.bin/node --import ./deploy/tracing.mjs src/server.ts
//
// (node instead of node_modules/.bin/node where the development tools were left out.) All settings
// are OpenTelemetry's own environment variables. Of a request the method, the path without secrets
// and the status are recorded, no header, query or body; of a statement its text, no parameter.

import { shownPath } from '../src/plugins/path.ts';

const [{ NodeSDK }, { getNodeAutoInstrumentations }] = await Promise.all([
  import('@opentelemetry/sdk-node'),
  import('@opentelemetry/auto-instrumentations-node'),
]).catch((error) => {
  throw new Error('tracing: install OpenTelemetry first; deploy/tracing.mjs says how', {
    cause: error,
  });
});

/** What stands in for the attributes that would hold what a client sent. */
const recorded = ({ url }) => ({
  'url.path': shownPath(url),
  'url.query': undefined,
  'user_agent.original': undefined,
  'http.url': undefined,
  'http.target': undefined,
  'http.user_agent': undefined,
});

/** Names the span by its address, which has no parameters: one name for each that there is. */
function nameSpan(span, request, { statusCode }) {
  // Of an answer that the service asked for, such as the keys of an issuer, nothing is known.
  if (request.url === undefined || statusCode === 404 || statusCode === 414) return;
  span.updateName(`${request.method} ${shownPath(request.url)}`);
}

const sdk = new NodeSDK({
  instrumentations: [
    getNodeAutoInstrumentations({
      '@opentelemetry/instrumentation-dns': { enabled: false },
      '@opentelemetry/instrumentation-fs': { enabled: false },
      '@opentelemetry/instrumentation-net': { enabled: false },
      '@opentelemetry/instrumentation-http': {
        startIncomingSpanHook: recorded,
        applyCustomAttributesOnSpan: nameSpan,
      },
      // Without a request there would be a trace of each look at how the database is.
      '@opentelemetry/instrumentation-pg': {
        enhancedDatabaseReporting: false,
        requireParentSpan: true,
      },
    }),
  ],
});
sdk.start();
// The service ends its process itself, so that what is left must be sent when it is told to stop.
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => sdk.shutdown());
