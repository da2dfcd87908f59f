import {
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResponse,
  type JSONRPCMessage,
  parseJSONRPCMessage,
  serializeMessage,
  type Transport,
} from '@modelcontextprotocol/server';

/** Maximum characters of a line. A request of a tool has less than a thousandth. */
const LINE_MAX = 10 * 2 ** 20;

const PARSE_ERROR = { code: -32_700, message: 'Parse error: the line is not JSON' };
const INVALID_REQUEST = {
  code: -32_600,
  message: 'Invalid Request: the line is not a message of JSON-RPC 2.0',
};

/** The id of a parsed line; null if it has none. */
function idOf(value: unknown): string | number | null {
  const { id } = (value ?? {}) as { readonly id?: unknown };
  return typeof id === 'string' || typeof id === 'number' ? id : null;
}

/** The lines of a stream, the last one also without its line end. @throws Error */
async function* linesOf(input: AsyncIterable<string | Buffer>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of input) {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > LINE_MAX) throw new Error(`a line has more than ${LINE_MAX} characters`);
    yield* lines;
  }
  yield rest;
}

/**
 * Messages as lines of two streams. The transport of the SDK cancels running calls when its input
 * ends, and does not answer a line that is not JSON.
 */
export class LineTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #input: NodeJS.ReadStream;
  readonly #output: NodeJS.WriteStream;
  /** Requests without a response. */
  readonly #pending = new Set<string | number>();
  readonly #answered = Promise.withResolvers<void>();
  #hasEnded = false;
  #isClosed = false;

  constructor(input: NodeJS.ReadStream, output: NodeJS.WriteStream) {
    this.#input = input;
    this.#output = output;
  }

  /** Resolves after the end of the input, when every request has its response. */
  get answered(): Promise<void> {
    return this.#answered.promise;
  }

  async start(): Promise<void> {
    void this.#read();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    try {
      await this.#write(serializeMessage(message));
    } finally {
      if (isJSONRPCResponse(message) && message.id !== undefined) this.#settle(message.id);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#pending.clear();
    this.#input.destroy();
    this.onclose?.();
  }

  async #read(): Promise<void> {
    try {
      for await (const line of linesOf(this.#input.setEncoding('utf8'))) {
        if (line.trim() !== '') this.#receive(line);
      }
    } catch (error) {
      // A failed input counts as ended.
      if (!this.#isClosed) this.onerror?.(error as Error);
    }
    this.#hasEnded = true;
    this.#settle(null);
  }

  #receive(line: string): void {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      this.#refuse(null, PARSE_ERROR);
      return;
    }
    let message: JSONRPCMessage;
    try {
      message = parseJSONRPCMessage(value);
    } catch {
      this.#refuse(idOf(value), INVALID_REQUEST);
      return;
    }
    if (isJSONRPCRequest(message)) {
      // The response to this request is sent when the connection closes.
      if (message.method !== 'subscriptions/listen') this.#pending.add(message.id);
    } else if (isJSONRPCNotification(message) && message.method === 'notifications/cancelled') {
      // A cancelled request has no response.
      const { requestId } = (message.params ?? {}) as { readonly requestId?: string | number };
      this.#settle(requestId ?? null);
    }
    this.onmessage?.(message);
  }

  #refuse(id: string | number | null, error: typeof PARSE_ERROR): void {
    const line = `${JSON.stringify({ jsonrpc: '2.0', id, error })}\n`;
    this.#write(line).catch((failure: Error) => this.onerror?.(failure));
  }

  #write(line: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#output.write(line, (error) => (error ? reject(error) : resolve()));
    });
  }

  #settle(id: string | number | null): void {
    if (id !== null) this.#pending.delete(id);
    if (this.#hasEnded && this.#pending.size === 0) this.#answered.resolve();
  }
}
