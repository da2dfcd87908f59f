import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type pg from 'pg';
import type { Config } from '../config/config.ts';
import { scopeClaimsOf } from '../config/scope-claims.ts';
import type { Client } from '../db/client.ts';
import type { MinRevisionCheck } from '../db/min-revision.ts';
import type { NewestRevision } from '../db/newest-revision.ts';
import type { Limits } from '../limits/limits.ts';
import { BodyStream } from '../std/body-stream.ts';
import type { HeldBytes } from '../std/held-bytes.ts';
import { isWaiting, RequestContext } from './context.ts';
import { allowOrigins, openPreflights, originsOf, varyByOrigin } from './cors.ts';
import { type AuthSettings, basicChallenge, CredentialChecks, warnOfExpiry } from './hooks/auth.ts';
import { admitOpen, shedLoad, takePlace, waitForBody } from './hooks/gate.ts';
import { checkFailures, countFailures, limitedBy, limitPrincipal } from './hooks/limit-requests.ts';
import { methods } from './hooks/methods.ts';
import { checkMinRevision } from './hooks/min-revision.ts';
import { bytesSent, logBegin, logEnd, type Observer, recordStreamError } from './hooks/observe.ts';
import { Readers } from './hooks/readers.ts';
import { recordUse } from './hooks/usage.ts';
import { problems } from './problems.ts';
import { dropUnreadBody, jsonBody, receiveBody, requireBody } from './request-body.ts';
import { checkHead, commonHeaders } from './request-head.ts';
import { RequestWork } from './work.ts';

/*
 * The steps of every request, in their order. `context.ts` has the record of a request that the
 * steps share, `hooks` the steps, `edge` the connections, `routes` the resources, and `reply` how
 * answers are sent.
 */

interface PipelineOptions {
  readonly config: Config;
  readonly client: Client;
  readonly limits: Limits;
  readonly observer: Observer;
  readonly createContext: CreateContext;
  readonly minRevision: MinRevisionCheck;
  /** Pool for the last use of keys, which is not recorded without it. */
  readonly usagePool?: pg.Pool | undefined;
}

type CreateContext = (request: FastifyRequest, reply: FastifyReply) => void;

/** Creates the context of a request, and ends it with the response or the disconnection. */
export const contextCreator =
  (
    deadlineMs: number,
    heldBytes: HeldBytes,
    checkRevision: () => Promise<NewestRevision>,
    observer?: Observer,
  ): CreateContext =>
  (request, reply) => {
    const { raw } = reply;
    const context = new RequestContext(
      new RequestWork(deadlineMs),
      heldBytes,
      checkRevision,
      bytesSent(request),
    );
    request.context = context;
    // Fastify's onResponse hook does not run if the client disconnects.
    raw.once('close', () => {
      if (observer) logEnd(request, reply, observer);
      context.work.end(raw.writableFinished);
    });
  };

const startDeadline = (request: FastifyRequest, _reply: FastifyReply, done: () => void): void => {
  if (!isWaiting(request)) request.context.work.startDeadline();
  done();
};

type AuthConfig = Pick<Config, 'JWT_SECRET' | 'JWT_PUBLIC_KEY_FILE' | 'JWT_JWKS_URL'> &
  Pick<Config, 'JWT_ISSUER' | 'JWT_AUDIENCE' | 'JWT_LIFETIME_MAX_SECONDS' | 'JWT_LEEWAY_SECONDS'> &
  Pick<Config, 'JWT_SCOPE_CLAIMS' | 'BASIC_AUTH'>;

/** The settings of authentication. */
export const authSettings = (config: AuthConfig): AuthSettings => ({
  signingKeys: {
    secret: config.JWT_SECRET,
    publicKeyFile: config.JWT_PUBLIC_KEY_FILE,
    jwksUrl: config.JWT_JWKS_URL,
  },
  tokenRules: {
    issuer: config.JWT_ISSUER,
    audience: config.JWT_AUDIENCE,
    scopeClaims: scopeClaimsOf(config.JWT_SCOPE_CLAIMS),
    lifetimeMaxSeconds: config.JWT_LIFETIME_MAX_SECONDS,
    leewaySeconds: config.JWT_LEEWAY_SECONDS,
  },
  takesBasic: config.BASIC_AUTH === 'on',
});

/** Creates the credential checks, and the recording of usage. */
function credentialChecks(
  app: FastifyInstance,
  options: PipelineOptions,
): Promise<CredentialChecks> {
  const { config, client, limits, usagePool } = options;
  const { reads, link } = client;
  const used = usagePool ? recordUse(app, usagePool) : null;
  const failed = countFailures(limits);
  return CredentialChecks.create(app, {
    db: reads.db(),
    link,
    settings: authSettings(config),
    lag: { nowMs: () => link.lagMs, maxMs: config.KEYS_LAG_MS_MAX },
    onChecked: (request, verdict) => {
      failed(request, verdict);
      used?.(request, verdict);
    },
  });
}

interface HookOptions extends PipelineOptions {
  readonly credentials: CredentialChecks;
  readonly rejectUnknown: (request: FastifyRequest) => void;
}

/**
 * Adds the hooks of every request, in execution order, each with the statuses that it rejects with.
 * Hooks of a route run after those of the same name here: they check its Accept header (406) before
 * the body is parsed.
 */
async function addHooks(app: FastifyInstance, steps: HookOptions): Promise<void> {
  const { config, limits, createContext } = steps;
  const { gate } = limits;
  const origins = originsOf(config.CORS_ORIGINS);
  const readers = new Readers(gate, config.STALL_TIMEOUT_MS);
  const line = { waitingMax: config.OPEN_WAITING_MAX, waitMs: config.WAITING_MS_MAX };

  app.addHook('onRequest', (request, reply, done) => {
    createContext(request, reply);
    logBegin(request);
    done();
  });
  app.addHook('onRequest', shedLoad(limits, origins)); // 429 503
  app.addHook('onRequest', receiveBody(config.BODY_BYTES_MAX, limitedBy));
  app.addHook('onRequest', startDeadline); // 504
  app.addHook('onRequest', commonHeaders);
  if (origins.size > 0) await allowOrigins(app, origins); // 204
  app.addHook('onRequest', checkHead(config.URL_BYTES_MAX)); // 400 414
  app.addHook('onRequest', admitOpen(line, config.OPEN_PER_SECOND)); // 503
  app.addHook('onRequest', checkFailures(limits)); // 429
  app.addHook('onRequest', steps.credentials.check); // 400 401 503
  app.addHook('onRequest', limitPrincipal(limits)); // 429
  app.addHook('onRequest', steps.credentials.checkScope); // 403
  app.addHook('onRequest', warnOfExpiry);
  app.addHook('preParsing', (request, _reply, payload, done) => {
    // While the body arrives, REQUEST_TIMEOUT_MS applies instead.
    request.context.work.clearDeadline();
    steps.rejectUnknown(request); // 404 405
    waitForBody(request);
    done(null, payload);
  });
  const bodyLimits = { depthMax: config.JSON_DEPTH_MAX, bytesMax: config.BODY_BYTES_MAX };
  jsonBody(app, bodyLimits); // 400 413 415
  app.addHook('preValidation', startDeadline); // 504
  app.addHook('preValidation', takePlace(gate)); // 503
  app.addHook('preValidation', requireBody); // 400
  app.addHook('preHandler', checkMinRevision(steps.minRevision)); // 400 503
  if (origins.size > 0) varyByOrigin(app);
  app.addHook('onSend', basicChallenge(config.BASIC_AUTH === 'on'));
  app.addHook('onSend', (request, reply, payload, done) => {
    const { context } = request;
    recordStreamError(request, payload);
    dropUnreadBody(request, reply);
    context.work.clearDeadline();
    // A client that does not read its answer must not keep a place.
    if (payload instanceof BodyStream) {
      payload.afterWrite = readers.follow(request);
      payload.once('end', () => context.releasePlace());
    } else {
      context.releasePlace();
    }
    done(null, payload);
  });
}

/**
 * Adds the hooks of all requests. Call it before routes are added.
 * @returns the credential checks
 */
export async function pipeline(
  app: FastifyInstance,
  options: PipelineOptions,
): Promise<CredentialChecks> {
  const { observer } = options;
  app.decorateRequest('context');
  problems(app);
  const rejectUnknown = methods(app);
  openPreflights(app);
  const credentials = await credentialChecks(app, options);
  await addHooks(app, { ...options, credentials, rejectUnknown });
  app.addHook('onClose', async () => observer.refusals.close());
  return credentials;
}
