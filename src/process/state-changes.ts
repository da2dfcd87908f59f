import cluster, { type Worker } from 'node:cluster';
import type { Logger } from 'pino';

/** A state change of a resource that all workers share, such as the database. */
export interface StateChange {
  readonly topic: string;
  /** The new state. A repeated state of a topic is logged only once. */
  readonly state: string;
  readonly level: 'info' | 'warn' | 'error';
  /** The log message; null for a state that is not logged. */
  readonly message: string | null;
}

const isStateChange = (message: unknown): message is StateChange =>
  typeof (message as Partial<StateChange> | null)?.topic === 'string';

const write = (logger: Logger, { level, message }: StateChange): void => {
  if (message !== null) logger[level](message);
};

/** Logs a state change. A worker sends it to the primary process instead. */
export function logStateChange(logger: Logger, change: StateChange): void {
  if (cluster.isWorker && process.connected) process.send?.(change);
  else write(logger, change);
}

/** Logs the state changes that workers send, once per state: all workers report an outage. */
export function logWorkerStates(logger: Logger): void {
  const states = new Map<string, string>();
  cluster.on('message', (_worker: Worker, message: unknown) => {
    if (!isStateChange(message) || states.get(message.topic) === message.state) return;
    states.set(message.topic, message.state);
    write(logger, message);
  });
}
