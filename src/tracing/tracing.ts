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

/** The longest text of a statement that is shown, in characters. */
const SHOWN_MAX = 2_000;

/** Texts between dollars or quotes, and numbers that are not part of a name or of a parameter. */
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

/** A statement as traces show it: with a mark in the place of each value. */
export function withoutValues(statement: string): string {
  return statement.replace(VALUES, '?').slice(0, SHOWN_MAX);
}

/** What is told of a request when it is over. */
export interface Ended {
  readonly name: string;
  readonly attributes: Attributes;
  readonly isFailed: boolean;
}

/** A request whose trace goes on. */
interface TracedRequest {
  /** Does something for the request: the statements of it belong to the trace. */
  within(work: () => void): void;
  end(ended: Ended): void;
}

/** What is sent to a collector of traces. */
export interface Tracing {
  /** Begins the span of a request, in the trace of whoever sent it. */
  begin(headers: IncomingHttpHeaders, method: string): TracedRequest;
  /** Does the work of a statement, with a span where it is done for a request. */
  statement<T>(text: string, work: () => Promise<T>): Promise<T>;
  /** Sends what is left, as far as the collector takes it in time. */
  end(): Promise<void>;
}

interface TracingOptions {
  readonly version: string;
  /** The process, as its log names it. */
  readonly pid: number;
  readonly sampling: Sampling;
  /** Told when spans could not be sent; they are lost, and nothing else is. */
  readonly onError: (error: unknown) => void;
}

/** How long the end of the process waits for a collector that does not answer. */
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
    // It holds a bounded number of spans, and forgets what comes beyond it.
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  });
}

/** The SQLSTATE of an error, or its kind; its message may hold values. */
const kindOf = (error: unknown): string =>
  String((error as { code?: unknown }).code ?? (error as Error).name);

/**
 * Sends traces as OpenTelemetry's own environment variables say. Nothing is made global but what
 * hears of spans that were lost, for which OpenTelemetry has no other place.
 */
export function openTracing(options: TracingOptions): Tracing {
  setGlobalErrorHandler(options.onError);
  const provider = providerOf(options);
  const tracer = provider.getTracer('commodity-prices', options.version);
  const callers = new W3CTraceContextPropagator();
  const running = new AsyncLocalStorage<Context>();

  const begin = (headers: IncomingHttpHeaders, method: string): TracedRequest => {
    // Not `tracestate`: it is text of whoever asks, and would be in every span.
    const { traceparent } = headers;
    const caller = callers.extract(ROOT_CONTEXT, { traceparent }, defaultTextMapGetter);
    const span = tracer.startSpan(method, { kind: SpanKind.SERVER }, caller);
    const context = trace.setSpan(caller, span);
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
    // What goes on in the name of a request that is over, such as a timer, is none of its work.
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
