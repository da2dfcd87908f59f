import fastifyJwt from '@fastify/jwt';
import type {
  FastifyInstance,
  FastifyRequest,
  onRequestAsyncHookHandler,
  onRequestHookHandler,
  onSendHookHandler,
  RouteOptions,
} from 'fastify';
import type { Kysely } from 'kysely';
import { credentialOf } from '../../auth/credentials.ts';
import { publicIdOf } from '../../auth/keys/format.ts';
import { cachedKeys, type FindKey, findKey, verifyKey } from '../../auth/keys/verify.ts';
import type { Principal } from '../../auth/principal.ts';
import {
  authUnavailable,
  insufficientScope,
  invalidToken,
  noMarketScope,
} from '../../auth/refusals.ts';
import { type KeySettings, type KeySource, keySourceOf } from '../../auth/tokens/signing-keys.ts';
import { type Claims, headerOf, principalOf, type TokenRules } from '../../auth/tokens/tokens.ts';
import { allows, marketsOpenTo } from '../../catalog/scopes.ts';
import type { Link } from '../../db/link/link.ts';
import type { Database } from '../../db/schema.ts';
import { Problem } from '../../errors.ts';
import type { Access } from '../context.ts';

/** The settings of the service that are needed here, named as in the environment. */
export interface AuthSettings extends KeySettings {
  readonly JWT_ISSUER: string;
  readonly JWT_AUDIENCE: string;
  readonly JWT_LIFETIME_MAX_SECONDS: number;
  readonly JWT_LEEWAY_SECONDS: number;
  readonly BASIC_AUTH?: 'on' | 'off';
}

/** How far a database may be behind for its keys to be believed. */
interface Lag {
  /** How long it may have lacked by now what was committed, in milliseconds. */
  readonly nowMs: () => number;
  /** 0 for no limit. */
  readonly mostMs: number;
}

/** The result of a check of a credential. */
interface Verdict {
  /** Null where nobody is known by it. */
  readonly principal: Principal | null;
  /** Null where it is good. */
  readonly refusal: Problem | null;
}

/** Hears each verdict when it falls, also that on a client who has left meanwhile. */
export type HearVerdict = (request: FastifyRequest, verdict: Verdict) => void;

interface AuthOptions {
  readonly db: Kysely<Database>;
  /** Without it keys are not cached. */
  readonly link?: Link;
  readonly settings: AuthSettings;
  readonly lag?: Lag;
  readonly heard?: HearVerdict;
  /** Waits until the database may be asked for a request. */
  readonly enter?: (request: FastifyRequest) => Promise<void>;
}

/** Keys that are remembered; an operator has dozens. */
const KEYS_KEPT = 10_000;

type VerifyToken = (request: FastifyRequest) => Promise<Principal>;

const rulesOf = (settings: AuthSettings): TokenRules => ({
  issuer: settings.JWT_ISSUER,
  audience: settings.JWT_AUDIENCE,
  lifetimeMaxSeconds: settings.JWT_LIFETIME_MAX_SECONDS,
  leewaySeconds: settings.JWT_LEEWAY_SECONDS,
});

/** No token is trusted until a setting says whose. */
const refuseTokens: VerifyToken = async () => {
  throw invalidToken(new Error('no issuer of tokens is configured'));
};

/** @fastify/jwt checks the signature, and only that: its answers for bad claims include 500s. */
async function tokenVerifier(
  app: FastifyInstance,
  source: KeySource,
  rules: TokenRules,
): Promise<VerifyToken> {
  const { algorithms, keyOf } = source;
  await app.register(fastifyJwt, {
    secret: async (request: FastifyRequest) =>
      keyOf(headerOf(credentialOf(request.raw.rawHeaders).text, algorithms)),
    verify: {
      algorithms: [...algorithms],
      ignoreExpiration: true,
      ignoreNotBefore: true,
      cache: false,
      extractToken: (request) => credentialOf(request.raw.rawHeaders).text,
    },
  });
  return async (request) => {
    const claims = await request.jwtVerify<Claims>().catch((cause: unknown) => {
      throw cause instanceof Problem ? cause : invalidToken(cause);
    });
    return principalOf(claims, rules, Date.now() / 1000);
  };
}

/** Nothing is open by accident: a route says who may use it, or the service does not start. */
function requireAccess({ config, method, url }: RouteOptions): void {
  if (config?.access !== undefined) return;
  throw new Error(`The route ${method} ${url} does not say who may use it`);
}

/** The access of the route asked for. One from before these checks was never asked: it is shut. */
function accessOf({ routeOptions }: FastifyRequest): Access {
  const { access } = routeOptions.config;
  if (access !== undefined) return access;
  throw new Error(`The route ${routeOptions.url} does not say who may use it`);
}

/** How the key of a request is looked up. */
function keyFinder(db: Kysely<Database>, link?: Link): (request: FastifyRequest) => FindKey {
  if (!link) return () => (id) => findKey(db, id);
  const keysAt = cachedKeys(db, KEYS_KEPT);
  return ({ context }) =>
    async (id, digest) =>
      keysAt(await context.newest, id, digest);
}

/**
 * A database that may have lacked for too long that a key was revoked tells nothing of keys.
 * @throws Problem auth_unavailable
 */
function checkLag({ nowMs, mostMs }: Lag): void {
  const lagMs = nowMs();
  if (mostMs === 0 || lagMs <= mostMs) return;
  throw authUnavailable(new Error(`the standby is ${(lagMs / 1_000).toFixed(1)} s behind`));
}

/** Why scopes do not open a route; null where they do. */
function scopeRefusal(access: Exclude<Access, 'none'>, held: ReadonlySet<string>): Problem | null {
  if (access === 'any') return null;
  if (access === 'some-market') return marketsOpenTo(held).length === 0 ? noMarketScope() : null;
  return allows(held, access.scope) ? null : insufficientScope(access.scope);
}

/** The checks of credentials. */
export interface Credentials {
  /** Checks the credential and the scope of each request, before a byte of the body is read. */
  readonly check: onRequestAsyncHookHandler;
  /**
   * Checks the credential once more, for a request that has waited since: it may have ended.
   * @throws Problem as at the first check
   */
  verifyAgain(request: FastifyRequest): Promise<Principal>;
  /** Tells that the caller lacks a scope; returns the refusal, to be thrown. */
  lacking(request: FastifyRequest, refusal: Problem): Problem;
}

/**
 * Checks the credential and the scope of every route, by its `config.access`. Call before the
 * routes.
 * @throws TokenSettingError for a setting that cannot be used
 */
export async function credentialsOf(
  app: FastifyInstance,
  options: AuthOptions,
): Promise<Credentials> {
  const { db, link, settings, lag, heard = () => {}, enter } = options;
  const source = await keySourceOf(settings);
  const verifyToken = source ? await tokenVerifier(app, source, rulesOf(settings)) : refuseTokens;
  const keyFinderOf = keyFinder(db, link);
  const findKeyOf = (request: FastifyRequest): FindKey => {
    const find = keyFinderOf(request);
    return async (id, digest) => {
      if (lag) checkLag(lag);
      return find(id, digest);
    };
  };
  const identified = async (request: FastifyRequest): Promise<Principal> => {
    const takesBasic = settings.BASIC_AUTH === 'on' && isRead(request);
    const { kind, text } = credentialOf(request.raw.rawHeaders, takesBasic);
    if (kind !== 'key') return verifyToken(request);
    if (enter && publicIdOf(text) !== null) await enter(request);
    return verifyKey(findKeyOf(request), text);
  };
  const verified = (request: FastifyRequest): Promise<Principal> => {
    const identity = identified(request);
    const told = identity.then(
      (principal) => heard(request, { principal, refusal: null }),
      (error: unknown) => {
        if (error instanceof Problem) heard(request, { principal: null, refusal: error });
      },
    );
    told.catch((error: unknown) => request.log.error(error));
    return request.context.work.until(identity);
  };
  const lacking = (request: FastifyRequest, refusal: Problem): Problem => {
    heard(request, { principal: request.context.principal, refusal });
    return refusal;
  };
  app.addHook('onRoute', requireAccess);
  return {
    check: async (request) => {
      if (request.is404) return;
      const access = accessOf(request);
      if (access === 'none') return;
      const { context } = request;
      context.principal = await verified(request);
      if (link) void context.newest;
      const refusal = scopeRefusal(access, context.principal.scopes);
      if (refusal !== null) throw lacking(request, refusal);
    },
    verifyAgain: (request) => {
      request.context.forgetNewest();
      return verified(request);
    },
    lacking,
  };
}

const isRead = ({ method }: FastifyRequest): boolean => method === 'GET' || method === 'HEAD';

const BASIC_CHALLENGE = 'Basic realm="prices", charset="UTF-8"';

/**
 * Adds the challenge of Basic to a 401 of a GET, so that spreadsheets ask for a key. The script of
 * a page does not get it: its browser would ask for a password.
 */
export const basicChallenge: onSendHookHandler = (request, reply, payload, done) => {
  const mode = request.headers['sec-fetch-mode'];
  const isScript = mode !== undefined && mode !== 'navigate';
  if (reply.statusCode === 401 && isRead(request) && !isScript) {
    reply.header('www-authenticate', `${reply.getHeader('www-authenticate')}, ${BASIC_CHALLENGE}`);
  }
  done(null, payload);
};

const WARNING_MS = 30 * 86_400_000;

/** Sends the expiry of a key as an HTTP date in its last 30 days. */
export const warnOfExpiry: onRequestHookHandler = ({ context: { principal } }, reply, done) => {
  if (principal?.kind === 'key' && principal.expiresAt !== null) {
    const end = Date.parse(principal.expiresAt);
    if (end - Date.now() < WARNING_MS) {
      reply.header('x-api-key-expires', new Date(end).toUTCString());
    }
  }
  done();
};
