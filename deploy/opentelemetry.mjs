// Traces of the service by OpenTelemetry's own instrumentation. docs/monitoring.md has the packages.
//
//   NODE_OPTIONS='--import ./deploy/opentelemetry.mjs' npm start
import { register } from 'node:module';

if (process.env.OTEL_EXPORTER_OTLP_ENDPOINT) {
  // Without this loader, only CommonJS modules are instrumented.
  register('@opentelemetry/instrumentation/hook.mjs', import.meta.url);
  const { NodeSDK } = await import('@opentelemetry/sdk-node');
  const { HttpInstrumentation } = await import('@opentelemetry/instrumentation-http');
  const { PgInstrumentation } = await import('@opentelemetry/instrumentation-pg');
  const sdk = new NodeSDK({
    serviceName: process.env.OTEL_SERVICE_NAME ?? 'commodity-prices',
    instrumentations: [
      new HttpInstrumentation(),
      new PgInstrumentation({ requireParentSpan: true }),
    ],
  });
  sdk.start();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => sdk.shutdown());
}
