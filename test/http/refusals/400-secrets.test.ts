import t from 'tap';
import { newKey } from '../../../src/auth/keys/format.ts';
import { testDatabase } from '../../support/database/database.ts';
import { serviceOn } from '../../support/http/service.ts';

const service = await serviceOn(t, await testDatabase(t));

t.test('a key as a filter, an option or a name is not repeated in the answer', async (t) => {
  const { text } = newKey();
  const filters = { regions: [text], products: ['x'], [text]: [text] };
  for (const body of [
    { filters: { codes: [text] } },
    { filters: { regions: [text] } },
    { filters, options: { asOf: text, currency: text, [text]: 1 } },
  ]) {
    const { text: sent } = await service.post('nickel', body);
    t.match(sent, '[secret]');
    t.notMatch(sent, text.slice(-38));
  }
});

t.test('a key in the address, without a credential in a header, is reported', async (t) => {
  const { text } = newKey();
  const coded = text.replaceAll('_', '%5F');
  const ask = (url: string) => service.app.inject({ method: 'GET', url });
  for (const query of [`key=${text}`, `x-api-key=${text}`, `regions=x&apikey=${coded}`]) {
    const answer = await ask(`/v3/prices/nickel?${query}`);
    t.match(answer.json(), { status: 401, code: 'missing_credentials' });
    t.match(
      answer.json().detail,
      /^Send an API key .*\. The address contains an API key .* revoke it/,
      query,
    );
    t.notMatch(answer.body, text.slice(-38));
  }
  const without = (await ask('/v3/prices/nickel?key=mine&regions=Europe')).json();
  t.match(without, { status: 401, code: 'missing_credentials' });
  t.notMatch(without.detail, /revoke/);
});
