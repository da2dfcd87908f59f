import { type FastifyRequest, fastify } from 'fastify';
import type { Config } from '../config/config.ts';
import { Problem } from '../errors.ts';
import { tokenVerifier } from '../http/hooks/auth.ts';
import { authSettings } from '../http/pipeline.ts';

/*
 * Uses of the HTTP layer by commands, which import no part of it themselves.
 */

type Verify = NonNullable<Awaited<ReturnType<typeof tokenVerifier>>>;

/** The principal of an accepted token, or the refusal. */
type TokenVerdict = Awaited<ReturnType<Verify>> | Problem;

/**
 * Checks a token with the code of the service: credential parser, @fastify/jwt and claim rules.
 * @returns the principal or the refusal; null if no setting names an issuer of tokens
 * @throws TokenSettingError
 */
export async function checkToken(config: Config, token: string): Promise<TokenVerdict | null> {
  const app = fastify();
  const verify = await tokenVerifier(app, authSettings(config));
  if (verify === null) return null;
  const verdict = Promise.withResolvers<TokenVerdict>();
  app.get('/', async (request: FastifyRequest) => {
    try {
      verdict.resolve(await verify(request));
    } catch (error) {
      if (error instanceof Problem) verdict.resolve(error);
      else verdict.reject(error);
    }
    return null;
  });
  await app.inject({ url: '/', headers: { authorization: `Bearer ${token}` } });
  await app.close();
  return verdict.promise;
}
