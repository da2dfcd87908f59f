import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import {
  type Attributes,
  type Context,
  defaultTextMapGetter,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
  serviceInstanceIdDetector,
} from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Sampling } from '../config/tracing.ts';

/** Most characters of a statement in a span. */
const SHOWN_MAX = 2_000;

/** Quoted texts, also in dollar quotes, and numbers that are not part of a name or parameter. */
const VALUES = new RegExp(
  [
    /(?<![\w$])\$([a-z_]\w*)?\$.*?\$\1\$/,
    /\be'(?:[^'\\]|\\.|'')*'/,
    /'(?:[^']|'')*'/,
    /(?<![\w$."])\d+(?:\.\d+)?\b/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gis',
);

/** Replaces each value of a statement by `?`. */
export function withoutValues(statement: string): string {
  return statement.replace(VALUES, '?').slice(0, SHOWN_MAX);
}

/** The name, attributes and status of a span, set at its end. */
export interface SpanEnd {
  readonly name: string;
  readonly attributes: Attributes;
  readonly isFailed: boolean;
}

/** A request with an open span. */
interface TracedRequest {
  /** Runs work of the request, whose statements get child spans. */
  within(work: () => void): void;
  end(ended: SpanEnd): void;
}

/** Sends traces to a collector. */
export interface Tracing {
  /** Begins the span of a request, as a child of the span in `traceparent`. */
  begin(headers: IncomingHttpHeaders, method: string): TracedRequest;
  /** Runs a statement, with a span if it belongs to a request. */
  statement<T>(text: string, work: () => Promise<T>): Promise<T>;
  /** Sends the remaining spans, within a timeout. */
  end(): Promise<void>;
}

interface TracingOptions {
  readonly version: string;
  readonly pid: number;
  readonly sampling: Sampling;
  /** Called when spans could not be sent and are lost. */
  readonly onError: (error: unknown) => void;
}

/** Timeout of the last spans when the service ends. */
const FLUSH_MS = 2_000;

function providerOf({ version, pid, sampling }: TracingOptions): TracerProvider {
  const own = resourceFromAttributes({
    'service.name': 'commodity-prices',
    'service.version': version,
    'process.pid': pid,
  });
  const detectors = [serviceInstanceIdDetector, envDetector];
  const root = new TraceIdRatioBasedSampler(sampling.share);
  return new TracerProvider({
    resource: defaultResource().merge(own).merge(detectResources({ detectors })),
    sampler: sampling.isOfParent ? new ParentBasedSampler({ root }) : root,
    // Its queue is bounded; it drops further spans.
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  });
}

/** The SQLSTATE or the name of an error. Its message may contain values. */
const kindOf = (error: unknown): string =>
  String((error as { code?: unknown }).code ?? (error as Error).name);

/**
 * Opens tracing as configured by OpenTelemetry's environment variables. Only the error handler for
 * lost spans is global, because OpenTelemetry has no other API for it.
 */
export function openTracing(options: TracingOptions): Tracing {
  setGlobalErrorHandler(options.onError);
  const provider = providerOf(options);
  const tracer = provider.getTracer('commodity-prices', options.version);
  const propagator = new W3CTraceContextPropagator();
  const running = new AsyncLocalStorage<Context>();

  const begin = (headers: IncomingHttpHeaders, method: string): TracedRequest => {
    // Without `tracestate`, which is arbitrary text of clients and would be in every span.
    const { traceparent } = headers;
    const parent = propagator.extract(ROOT_CONTEXT, { traceparent }, defaultTextMapGetter);
    const span = tracer.startSpan(method, { kind: SpanKind.SERVER }, parent);
    const context = trace.setSpan(parent, span);
    return {
      within: (work) => running.run(context, work),
      end: ({ name, attributes, isFailed }) => {
        span.updateName(name).setAttributes(attributes);
        if (isFailed) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      },
    };
  };

  async function statement<T>(text: string, work: () => Promise<T>): Promise<T> {
    const context = running.getStore();
    // Work that outlasts its request, such as a timer, has a context whose span has ended.
    if (!context || !trace.getSpan(context)?.isRecording()) return work();
    const shown = withoutValues(text);
    const name = /\w+/.exec(shown)?.[0] ?? 'statement';
    const attributes = { 'db.system.name': 'postgresql', 'db.query.text': shown };
    const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, context);
    try {
      return await work();
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR }).setAttribute('error.type', kindOf(error));
      throw error;
    } finally {
      span.end();
    }
  }

  const end = (): Promise<void> =>
    Promise.race([
      provider.shutdown().catch(options.onError),
      pause(FLUSH_MS, undefined, { ref: false }),
    ]);
  return { begin, statement, end };
}
