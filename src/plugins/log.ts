import { type DestinationStream, type Logger, pino } from 'pino';

/**
 * The log of the service: JSON lines, one for each request. Of a request it tells method and path,
 * never headers and never the query.
 */
export const loggerOf = (level: string, destination: DestinationStream): Logger =>
  pino({ level, serializers: { err: pino.stdSerializers.err } }, destination);
