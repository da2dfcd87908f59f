import type { FastifyRequest } from 'fastify';
import { type DestinationStream, type Logger, pino } from 'pino';
import { shownPath } from './path.ts';

/**
 * The log of the service: JSON lines. Of a request it tells method and path, never headers and
 * never the query.
 */
export const loggerOf = (level: string, destination: DestinationStream): Logger =>
  pino(
    {
      level,
      serializers: {
        req: (request: FastifyRequest) => ({
          method: request.method,
          path: shownPath(request.url),
          remoteAddress: request.ip,
        }),
        err: pino.stdSerializers.err,
      },
    },
    destination,
  );
