import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type t from 'tap';

type AttributeValue = string | number | boolean;

/** A span as OTLP has it. */
export interface TraceSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly status: { readonly code: number };
  readonly attributes: Readonly<Record<string, AttributeValue>>;
  /** Attributes of the process that sent it. */
  readonly resource: Readonly<Record<string, AttributeValue>>;
}

/** A receiver of traces: OTLP over HTTP. */
export interface TraceCollector {
  readonly address: string;
  /** Received bodies as text. */
  readonly texts: readonly string[];
  readonly paths: ReadonlySet<string>;
  spans(): TraceSpan[];
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, AttributeValue>>;
}

const membersOf = (attributes: readonly Attribute[]): Record<string, AttributeValue> =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [key, Object.values(value)[0] as AttributeValue] as const),
  );

/** The spans of one message; numbers may be text, as JSON of OTLP writes whole ones. */
function spansOf(text: string): TraceSpan[] {
  const { resourceSpans } = JSON.parse(text);
  // biome-ignore lint/suspicious/noExplicitAny: the members are those of OTLP.
  return resourceSpans.flatMap(({ resource, scopeSpans }: any) =>
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    scopeSpans.flatMap(({ spans }: any) =>
      // biome-ignore lint/suspicious/noExplicitAny: as above.
      spans.map((span: any) => ({
        ...span,
        attributes: membersOf(span.attributes),
        resource: membersOf(resource.attributes),
      })),
    ),
  );
}

/**
 * Starts a collector on a port of this machine.
 * @param status what it answers; null for nothing at all
 */
export async function startCollector(
  test: Pick<typeof t, 'teardown'>,
  status: number | null = 200,
): Promise<TraceCollector> {
  const texts: string[] = [];
  const paths = new Set<string>();
  const server = createServer(async (request, reply) => {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    texts.push(text);
    paths.add(`${request.method} ${request.url}`);
    if (status !== null) reply.writeHead(status, { 'content-type': 'application/json' }).end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    address: `http://127.0.0.1:${port}`,
    texts,
    paths,
    spans: () => texts.flatMap(spansOf),
  };
}
