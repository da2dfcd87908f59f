import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import type pg from 'pg';
import type { Config } from '../config/config.ts';
import type { Client } from '../db/client.ts';
import type { Newest } from '../db/newest.ts';
import type { Exchange } from '../limits/exchange.ts';
import type { Limits } from '../limits/limits.ts';
import type { Tracing } from '../tracing/tracing.ts';
import { dropRest, jsonBody, receiveBody, requireBody } from './body.ts';
import { isWaiting, RequestContext } from './context.ts';
import type { Refusals } from './edge/refuse.ts';
import { type Handover, stopGracefully } from './edge/stop.ts';
import { checkHead, commonHeaders } from './head.ts';
import { basicChallenge, type Credentials, credentialsOf, warnOfExpiry } from './hooks/auth.ts';
import { allowOrigin, answerPreflight, originsOf, varyByOrigin } from './hooks/cors.ts';
import { letIn, letInLast, letOpenIn, placeOf, turnAway } from './hooks/gate.ts';
import { checkFailures, countFailures, limitPrincipal } from './hooks/limits.ts';
import { methods } from './hooks/methods.ts';
import { type Observer, sentBy, tellBegin, tellEnd, traced, watchAnswer } from './hooks/observe.ts';
import { usage } from './hooks/usage.ts';
import { problems } from './problems.ts';
import { Work } from './work.ts';

interface PipelineOptions {
  readonly config: Config;
  readonly client: Client;
  readonly limits: Limits;
  readonly observer: Observer;
  readonly refusals: Refusals;
  readonly begin: Begin;
  /** Without it nothing is noted and shared. */
  readonly usagePool?: pg.Pool | undefined;
  /** Without it nothing is traced. */
  readonly tracing?: Tracing | undefined;
  readonly handover?: Handover | undefined;
}

type Begin = (request: FastifyRequest, reply: FastifyReply) => void;

/** Begins the record of a request, and ends it when the answer is out, or its reader gone. */
export const beginner =
  (deadlineMs: number, look: () => Promise<Newest>, observer?: Observer): Begin =>
  (request, reply) => {
    const { raw } = reply;
    const context = new RequestContext(new Work(deadlineMs), look, sentBy(request));
    request.context = context;
    // Fastify's own hook for that is not called when a client leaves.
    raw.once('close', () => {
      if (observer) tellEnd(request, reply, observer);
      context.work.end(raw.writableFinished);
    });
  };

/** The time for an answer counts from now on. */
const startDeadline = (request: FastifyRequest, _reply: FastifyReply, done: () => void): void => {
  if (!isWaiting(request)) request.context.work.hurry();
  done();
};

/** The checks of credentials, and the notes on the use of the service. */
async function guards(app: FastifyInstance, options: PipelineOptions) {
  const { config, client, limits, usagePool } = options;
  const { reads, link } = client;
  const deniedBurst = config.KEY_DENIED_BURST;
  const used = usagePool ? usage(app, usagePool, { limits, deniedBurst }) : null;
  const failed = countFailures(limits);
  const credentials = await credentialsOf(app, {
    db: reads.db(),
    link,
    settings: config,
    lag: { nowMs: () => link.lagMs, mostMs: config.KEYS_LAG_MS_MAX },
    heard: (request, verdict) => {
      failed(request, verdict);
      used?.heard(request, verdict);
    },
    enter: placeOf(limits.gate),
  });
  return { credentials, exchange: used?.exchange ?? null };
}

/** The steps of a request that are not the same for all services. */
interface Steps extends PipelineOptions {
  readonly credentials: Credentials;
  readonly closing: onRequestHookHandler;
  readonly refuseUnknown: (request: FastifyRequest) => void;
}

/**
 * Every step of a request, in the order in which they run, with the statuses that each refuses
 * with. The hooks of a route run after those of the same name here: they check what it accepts
 * (406) before the body is parsed.
 */
function addSteps(app: FastifyInstance, steps: Steps): void {
  const { config, client, limits, refusals, begin, tracing } = steps;
  const { gate } = limits;
  const origins = originsOf(config.CORS_ORIGINS);
  const line = { waitingMax: config.OPEN_WAITING_MAX, waitMs: config.WAITING_MS_MAX };

  app.addHook('onRequest', (request, reply, done) => {
    begin(request, reply);
    tellBegin(request);
    done();
  });
  if (tracing) app.addHook('onRequest', traced(tracing));
  app.addHook('onRequest', turnAway(gate, refusals)); // 503
  app.addHook('onRequest', receiveBody(config.BODY_BYTES_MAX));
  app.addHook('onRequest', startDeadline); // 504
  app.addHook('onRequest', commonHeaders);
  if (origins.size > 0) app.addHook('onRequest', allowOrigin(origins));
  app.addHook('onRequest', checkHead(config.URL_BYTES_MAX)); // 400 414
  app.addHook('onRequest', steps.closing);
  app.addHook('onRequest', letIn(gate, client.link.queues)); // 503
  app.addHook('onRequest', letOpenIn(line, config.OPEN_PER_SECOND)); // 503
  if (origins.size > 0) app.addHook('onRequest', answerPreflight(origins)); // 204
  app.addHook('onRequest', checkFailures(limits)); // 429
  app.addHook('onRequest', steps.credentials.check); // 400 401 403 503
  app.addHook('onRequest', limitPrincipal(limits)); // 429
  app.addHook('onRequest', letInLast(gate)); // 503
  app.addHook('onRequest', warnOfExpiry);
  app.addHook('preParsing', (request, _reply, payload, done) => {
    // Another limit holds while the body arrives.
    request.context.work.relax();
    steps.refuseUnknown(request); // 404 405
    done(null, payload);
  });
  jsonBody(app, config); // 400 413 415
  app.addHook('preValidation', startDeadline); // 504
  app.addHook('preValidation', requireBody); // 400
  if (origins.size > 0) varyByOrigin(app);
  if (config.BASIC_AUTH === 'on') app.addHook('onSend', basicChallenge);
  app.addHook('onSend', (request, reply, payload, done) => {
    const { leavePlace, work } = request.context;
    // Its connection was to be refused as too late: this is the only answer.
    if (refusals.cancel(request.raw.socket)) reply.header('connection', 'close');
    watchAnswer(request, payload);
    dropRest(request, reply);
    work.relax();
    // A client without a credential may leave its refusals unread, and keeps no place with them.
    if (reply.statusCode >= 400) leavePlace?.();
    done(null, payload);
  });
}

/**
 * Adds the steps of all requests. Call before the routes.
 * @returns the checks of credentials, and the exchange of counts with other instances, if any
 */
export async function pipeline(
  app: FastifyInstance,
  options: PipelineOptions,
): Promise<{ readonly credentials: Credentials; readonly exchange: Exchange | null }> {
  const { config, observer, handover } = options;
  app.decorateRequest('context');
  problems(app);
  const closing = stopGracefully(app, { graceMs: config.STOP_GRACE_MS, handover });
  const refuseUnknown = methods(app);
  const { credentials, exchange } = await guards(app, options);
  addSteps(app, { ...options, credentials, closing, refuseUnknown });
  app.addHook('onClose', async () => observer.lines.summarise());
  return { credentials, exchange };
}
