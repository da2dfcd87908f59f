import type { FastifyInstance } from 'fastify';
import { strayParameters } from '../../contract/request/query.ts';
import type { SentBody } from '../../contract/request/validate.ts';
import { calculationBody, calculationContent } from '../../contract/schemas/calculations.ts';
import { calculationPlan } from '../../prices/calculation/plan.ts';
import type { CredentialChecks } from '../hooks/auth.ts';
import { requestKey } from '../reply/answer-cache.ts';
import { calculationFormatOf, sendCalculation } from '../reply/calculations.ts';
import type { PriceStore } from '../reply/prices.ts';
import { codingOf } from '../reply/send.ts';
import { calculationOperation, NOT_MODIFIED } from './operations.ts';

/** `POST /v3/calculations`: a formula over prices, rates and numbers, with a receipt. */
export function calculationRoute(
  app: FastifyInstance,
  store: PriceStore,
  credentials: CredentialChecks,
): void {
  app.post('/v3/calculations', {
    // The body decides which markets are read.
    config: { access: 'some-market' },
    preParsing: (request, _reply, payload, done) => {
      calculationFormatOf(request);
      codingOf(request);
      done(null, payload);
    },
    schema: {
      ...calculationOperation,
      body: calculationBody,
      response: { 200: calculationContent, ...NOT_MODIFIED },
    },
    handler: async (request, reply) => {
      const { bytes, parse } = request.body as SentBody;
      const query = {
        key: requestKey(request, bytes.toString('latin1')),
        makePlan: () => calculationPlan(parse(), strayParameters(request.url)),
      };
      return sendCalculation(request, reply, store, query, (of, refusal) =>
        credentials.reportMissingScope(of, refusal),
      );
    },
  });
}
