import Type from 'typebox';
import { closed, Instant, nullable } from './components.ts';

const limit = (description: string) => nullable(Type.Integer({ minimum: 1 }), { description });

/** The answer of `GET /v3/me`. */
export const Me = closed(
  {
    kind: Type.Union([Type.Literal('key'), Type.Literal('token')], {
      description: 'An API key or a bearer token',
    }),
    id: Type.String({ description: 'The public id of the key, or the subject of the token' }),
    scopes: Type.Array(Type.String(), { description: 'The scopes held that mean something here' }),
    markets: Type.Array(Type.String(), { description: 'The markets that they open' }),
    expiresAt: nullable(Instant('When the credential stops working; null for never')),
    limits: closed(
      {
        requestsPerMinute: limit('Null for no limit'),
        burst: limit('Requests at once, within the rate; null for no limit'),
        concurrent: limit('Requests at the same time; null for no limit'),
      },
      { description: 'What this credential may do' },
    ),
  },
  { $id: 'Me' },
);
