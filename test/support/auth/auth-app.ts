import { type FastifyInstance, fastify } from 'fastify';
import type { Kysely } from 'kysely';
import type t from 'tap';
import type { Link } from '../../../src/db/link/link.ts';
import type { Database } from '../../../src/db/schema.ts';
import type { Access } from '../../../src/http/context.ts';
import { CredentialChecks } from '../../../src/http/hooks/auth.ts';
import { authSettings, contextCreator } from '../../../src/http/pipeline.ts';
import { problems } from '../../../src/http/problems.ts';
import { requestIdOf } from '../../../src/http/request-head.ts';
import { HeldBytes } from '../../../src/std/held-bytes.ts';

type AuthConfig = Parameters<typeof authSettings>[0];

/** Settings that trust no token. */
export const NO_TOKENS = {
  JWT_ISSUER: 'https://issuer.test',
  JWT_AUDIENCE: 'commodity-prices',
  JWT_SCOPE_CLAIMS: 'scope,scp,scopes',
  JWT_LIFETIME_MAX_SECONDS: 86_400,
  JWT_LEEWAY_SECONDS: 30,
  BASIC_AUTH: 'off',
} as const satisfies AuthConfig;

/** A secret as an operator would draw it. */
export const SECRET = 'a secret of the tests, longer than 32 bytes';
export const HS256: AuthConfig = { ...NO_TOKENS, JWT_SECRET: SECRET };

/** The request id that makes two answers comparable to the byte. */
export const REQUEST_ID = 'one-id-for-all';

const ROUTES: Record<string, Access> = {
  '/nickel': { scope: 'prices:nickel' },
  '/copper': { scope: 'prices:copper' },
  '/me': 'any',
  '/open': 'none',
};

type Test = Pick<typeof t, 'teardown'>;

/** The steps of the pipeline that check credentials, alone. */
export async function checkCredentials(
  app: FastifyInstance,
  {
    settings,
    ...options
  }: Omit<Parameters<(typeof CredentialChecks)['create']>[1], 'settings'> & {
    readonly settings: AuthConfig;
  },
): Promise<void> {
  const { link } = options;
  const checkRevision = async () => {
    if (link) return link.newestRevision();
    throw new Error('the newest revision was not expected to be read');
  };
  const begin = contextCreator(60_000, new HeldBytes(0), checkRevision);
  problems(app);
  app.decorateRequest('context');
  app.addHook('onRequest', async (request, reply) => begin(request, reply));
  const { check, checkScope } = await CredentialChecks.create(app, {
    ...options,
    settings: authSettings(settings),
  });
  app.addHook('onRequest', check);
  app.addHook('onRequest', checkScope);
}

/** A listening application that checks credentials; its routes return principal and body. */
export async function authApp(
  test: Test,
  options: { readonly db: Kysely<Database>; readonly settings?: AuthConfig; link?: Link },
) {
  const app = fastify({ genReqId: requestIdOf });
  await checkCredentials(app, { ...options, settings: options.settings ?? NO_TOKENS });
  for (const [url, access] of Object.entries(ROUTES)) {
    app.route({
      method: ['GET', 'POST'],
      url,
      config: { access },
      handler: async ({ context: { principal }, body = null }) => ({
        principal: principal && { ...principal, scopes: [...principal.scopes] },
        body,
      }),
    });
  }
  await app.listen({ port: 0, host: '127.0.0.1' });
  test.teardown(() => app.close());
  return app;
}
