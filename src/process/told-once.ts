import cluster, { type Worker } from 'node:cluster';
import type { Logger } from 'pino';

/** What became of something that all workers share, such as the database. */
export interface News {
  readonly about: string;
  /** How it is now: told again only once it was otherwise. */
  readonly state: string;
  readonly level: 'info' | 'warn' | 'error';
  /** The line of the log; null for a state that nobody need read of. */
  readonly line: string | null;
}

const isNews = (message: unknown): message is News =>
  typeof (message as Partial<News> | null)?.about === 'string';

const write = (logger: Logger, { level, line }: News): void => {
  if (line !== null) logger[level](line);
};

/** Tells news: one of several workers to the process that started them, any other to the log. */
export function tellOnce(logger: Logger, news: News): void {
  if (cluster.isWorker && process.connected) process.send?.(news);
  else write(logger, news);
}

/** Writes what workers tell to the log, each once: an outage is one, however many notice it. */
export function hearWorkers(logger: Logger): void {
  const states = new Map<string, string>();
  cluster.on('message', (_worker: Worker, message: unknown) => {
    if (!isNews(message) || states.get(message.about) === message.state) return;
    states.set(message.about, message.state);
    write(logger, message);
  });
}
