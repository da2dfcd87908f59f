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
import { credentialOf, isCalendarToken, type Principal } from '../../auth/credentials.ts';
import { cachedKeys, findKey, type KeyLookup, verifyKey } from '../../auth/keys/verify.ts';
import {
  authUnavailable,
  calendarTokenElsewhere,
  insufficientScope,
  invalidApiKey,
  invalidToken,
  noMarketScope,
} from '../../auth/refusals.ts';
import { keySourceOf, type SigningKeySettings } from '../../auth/tokens/signing-keys.ts';
import { type Claims, headerOf, principalOf, type TokenRules } from '../../auth/tokens/tokens.ts';
import { allows, marketsOpenTo } from '../../catalog/scopes.ts';
import type { Link } from '../../db/link/link.ts';
import type { Database } from '../../db/schema.ts';
import { Problem } from '../../errors.ts';
import type { Access } from '../context.ts';

/** Settings of authentication. */
export interface AuthSettings {
  readonly signingKeys: SigningKeySettings;
  readonly tokenRules: TokenRules;
  /** True if a read may send its key as the password of Basic authentication. */
  readonly takesBasic: boolean;
}

/** Limit on the replication lag of the database that keys are read from. */
interface Lag {
  /** Upper bound of the present lag. */
  readonly nowMs: () => number;
  /** 0 for no limit. */
  readonly maxMs: number;
}

/** The result of a credential check. */
interface CredentialCheck {
  /** Null if the credential is invalid. */
  readonly principal: Principal | null;
  /** Null if the request is admitted. */
  readonly refusal: Problem | null;
}

/** Called for each credential check, even if the client has disconnected meanwhile. */
export type OnCredentialCheck = (request: FastifyRequest, verdict: CredentialCheck) => void;

interface AuthOptions {
  readonly db: Kysely<Database>;
  /** Without a link, keys are not cached. */
  readonly link?: Link;
  readonly settings: AuthSettings;
  readonly lag?: Lag;
  readonly onChecked?: OnCredentialCheck;
}

/** Maximum number of cached keys; a typical operator has dozens. */
const CACHED_KEYS_MAX = 10_000;

type VerifyToken = (request: FastifyRequest) => Promise<Principal>;

/** Without a setting for tokens, none is trusted. */
const rejectTokens: VerifyToken = async () => {
  throw invalidToken(new Error('no issuer of tokens is configured'));
};

/**
 * The check of tokens by the settings; null if they name no issuer. @fastify/jwt checks only the
 * signature, because it responds to some invalid claims with 500.
 * @throws TokenSettingError for an unusable setting
 */
export async function tokenVerifier(
  app: FastifyInstance,
  { signingKeys, tokenRules: rules }: Pick<AuthSettings, 'signingKeys' | 'tokenRules'>,
): Promise<VerifyToken | null> {
  const source = await keySourceOf(signingKeys);
  if (source === undefined) return null;
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

/** Rejects a route without an access rule, so that no route is open by accident. */
function requireAccess({ config, method, url }: RouteOptions): void {
  if (config?.access !== undefined) return;
  throw new Error(`the route ${method} ${url} has no access rule`);
}

/** The access rule of a route. Routes added before `requireAccess` may have none: rejected. */
function accessOf({ routeOptions }: FastifyRequest): Access {
  const { access } = routeOptions.config;
  if (access !== undefined) return access;
  throw new Error(`the route ${routeOptions.url} has no access rule`);
}

/** Returns the key lookup of each request. */
function keyLookup({ db, link, lag }: AuthOptions): (request: FastifyRequest) => KeyLookup {
  const keysAt = link && cachedKeys(db, CACHED_KEYS_MAX, link.queues);
  return ({ context }) =>
    async (id, digest) => {
      if (lag) checkLag(lag);
      return keysAt ? keysAt(await context.newest, id, digest) : findKey(db, id);
    };
}

/**
 * Checks the replication lag, because a lagging standby may not know that a key was revoked.
 * @throws Problem auth_unavailable
 */
function checkLag({ nowMs, maxMs }: Lag): void {
  const lagMs = nowMs();
  if (maxMs === 0 || lagMs <= maxMs) return;
  throw authUnavailable(new Error(`the standby is ${(lagMs / 1_000).toFixed(1)} s behind`));
}

/** The refusal for missing scopes; null if they satisfy the access rule. */
function scopeRefusal(access: Exclude<Access, 'none'>, held: ReadonlySet<string>): Problem | null {
  if (access === 'any') return null;
  if (access === 'some-market') return marketsOpenTo(held).length === 0 ? noMarketScope() : null;
  return allows(held, access.scope) ? null : insufficientScope(access.scope);
}

/** The refusal of a request whose principal lacks the scope of its route; else null. */
function missingScope(request: FastifyRequest): Problem | null {
  const { principal } = request.context;
  const access = principal === null ? 'none' : accessOf(request);
  return principal === null || access === 'none' ? null : scopeRefusal(access, principal.scopes);
}

/** The checks of credentials and scopes by the `config.access` of each route. */
export class CredentialChecks {
  readonly #options: AuthOptions;
  readonly #verifyToken: VerifyToken;
  readonly #keyLookup: (request: FastifyRequest) => KeyLookup;

  private constructor(options: AuthOptions, verifyToken: VerifyToken) {
    this.#options = options;
    this.#verifyToken = verifyToken;
    this.#keyLookup = keyLookup(options);
  }

  /**
   * Creates the checks. Call it before routes are added.
   * @throws TokenSettingError for an unusable setting
   */
  static async create(app: FastifyInstance, options: AuthOptions): Promise<CredentialChecks> {
    const verifyToken = (await tokenVerifier(app, options.settings)) ?? rejectTokens;
    app.addHook('onRoute', requireAccess);
    return new CredentialChecks(options, verifyToken);
  }

  /** Hook: checks the credential before the body is parsed. */
  readonly check: onRequestAsyncHookHandler = async (request) => {
    if (request.is404 || accessOf(request) === 'none') return;
    const { context } = request;
    context.principal = await this.#authenticateReported(request);
    if (this.#options.link) void context.newest;
  };

  /** Hook: checks the scope, after the limits of the principal. */
  readonly checkScope: onRequestHookHandler = (request, _reply, done) => {
    const refusal = missingScope(request);
    done(refusal === null ? undefined : this.reportMissingScope(request, refusal));
  };

  /**
   * Checks the credential again after a wait, because it may have expired or been revoked.
   * @throws Problem like the first check
   */
  verifyAgain(request: FastifyRequest): Promise<Principal> {
    request.context.resetNewest();
    return this.#authenticateReported(request);
  }

  /** Reports a missing scope to `onChecked`. Returns the refusal, which the caller throws. */
  reportMissingScope(request: FastifyRequest, refusal: Problem): Problem {
    this.#options.onChecked?.(request, { principal: request.context.principal, refusal });
    return refusal;
  }

  async #authenticate(request: FastifyRequest): Promise<Principal> {
    const isCalendar = request.routeOptions.config.takesCalendarToken === true;
    const { takesBasic } = this.#options.settings;
    const takesPassword = (takesBasic || isCalendar) && isRead(request);
    const { place, text } = credentialOf(request.raw.rawHeaders, takesPassword, request.url);
    if (place === 'token') return this.#verifyToken(request);
    // Without Basic for keys, the calendar address takes it for its own tokens only.
    if (place === 'password' && !takesBasic && !isCalendarToken(text)) throw invalidApiKey(place);
    const principal = await verifyKey(this.#keyLookup(request), text, place);
    if (isCalendarToken(text) && !isCalendar) throw calendarTokenElsewhere();
    return principal;
  }

  #authenticateReported(request: FastifyRequest): Promise<Principal> {
    const { onChecked } = this.#options;
    const identity = this.#authenticate(request);
    const reported = identity.then(
      (principal) => onChecked?.(request, { principal, refusal: null }),
      (error: unknown) => {
        if (error instanceof Problem) onChecked?.(request, { principal: null, refusal: error });
      },
    );
    reported.catch((error: unknown) => request.log.error(error));
    return request.context.work.until(identity);
  }
}

const isRead = ({ method }: FastifyRequest): boolean => method === 'GET' || method === 'HEAD';

const BASIC_CHALLENGE = 'Basic realm="prices", charset="UTF-8"';

/**
 * Adds the Basic challenge to a 401 of a GET, so that spreadsheets and calendars prompt for a key.
 * Requests of scripts do not get it, because browsers would show a password prompt. On plain http a
 * browser sends no Sec-Fetch-Mode, but only a program sends x-api-key.
 */
export const basicChallenge =
  (takesBasic: boolean): onSendHookHandler =>
  (request, reply, payload, done) => {
    const isTaken = takesBasic || request.routeOptions.config.takesCalendarToken === true;
    const { 'sec-fetch-mode': mode = 'navigate', 'x-api-key': key } = request.headers;
    const isScript = mode !== 'navigate' || key !== undefined;
    if (isTaken && reply.statusCode === 401 && isRead(request) && !isScript) {
      const challenge = `${reply.getHeader('www-authenticate')}, ${BASIC_CHALLENGE}`;
      reply.header('www-authenticate', challenge);
    }
    done(null, payload);
  };

const WARNING_MS = 30 * 86_400_000;

/** Adds the expiry of a key as an HTTP date in its last 30 days. */
export const warnOfExpiry: onRequestHookHandler = ({ context: { principal } }, reply, done) => {
  if (principal?.kind === 'key' && principal.expiresAt !== null) {
    const end = Date.parse(principal.expiresAt);
    if (end - Date.now() < WARNING_MS) {
      reply.header('x-api-key-expires', new Date(end).toUTCString());
    }
  }
  done();
};
