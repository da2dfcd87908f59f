import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type t from 'tap';

type Value = string | number | boolean;

/** A span as OTLP has it. */
export interface Span {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly status: { readonly code: number };
  readonly attributes: Readonly<Record<string, Value>>;
  /** What is said of the process that sent it. */
  readonly resource: Readonly<Record<string, Value>>;
}

/** What takes traces: OTLP over HTTP. */
export interface Collector {
  readonly address: string;
  /** What came, as it came. */
  readonly texts: readonly string[];
  readonly paths: ReadonlySet<string>;
  spans(): Span[];
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, Value>>;
}

const membersOf = (attributes: readonly Attribute[]): Record<string, Value> =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [key, Object.values(value)[0] as Value] as const),
  );

/** The spans of one message; numbers may be text, as JSON of OTLP writes whole ones. */
function spansOf(text: string): Span[] {
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
): Promise<Collector> {
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
