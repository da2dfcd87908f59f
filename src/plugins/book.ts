import type { FastifyInstance } from 'fastify';
import { PriceBook } from '../book/book.ts';
import type { Client } from '../db/client.ts';
import { databaseProblem } from '../db/failures.ts';
import type { Sources } from '../prices/answer.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** Prices that are kept ready; null where the settings keep none. */
    book: PriceBook | null;
  }
}

interface PriceBookOptions {
  /** Bytes that everything remembered may take; 0 for no book. */
  readonly bytes: number;
  readonly sources: Sources;
  readonly client: Client;
}

/**
 * The price book of the service. It is filled behind the answers once the service listens, and
 * follows commits as soon as they are heard of: requests see them in any case.
 */
export function priceBook(app: FastifyInstance, options: PriceBookOptions): PriceBook | null {
  const { bytes, sources, client } = options;
  const onError = (error: Error) => {
    // The link reports a database that is away, once.
    const level = databaseProblem(error) === null ? 'warn' : 'debug';
    app.log[level]({ err: error }, 'the price book was not brought up to date');
  };
  const book = bytes > 0 ? new PriceBook({ bytes, sources, onError }) : null;
  app.decorate('book', book);
  if (book === null) return null;
  const look = () => client.link.look();
  let forget = () => {};
  app.addHook('onListen', async () => {
    forget = client.link.onCommit(() => {
      book.refresh(look).catch(onError);
    });
    book.fill(look).catch(onError);
  });
  app.addHook('onClose', async () => {
    forget();
    await book.close();
  });
  return book;
}
