import t from 'tap';
import { seededDatabase } from '../../support/database/database.ts';
import { type Service, serviceOn } from '../../support/http/service.ts';
import { violationsOf } from '../../support/http/violations.ts';

let service: Service;
t.before(async () => {
  service = await serviceOn(t, await seededDatabase(t));
});

const nickel = (filters: object, strict: boolean) =>
  service.post('nickel', { filters, options: { strict } });

t.test(
  'with strict, what would be a warning is a refusal that names the same places',
  async (t) => {
    for (const filters of [
      { products: ['Nickel briquette', 'Nickel briquet'], regions: ['Atlantis', 'Europe'] },
      { codes: ['CP-NI-0001', 'CP-CO-0001', 'none'] },
      { purities: ['00000000-0000-4000-8000-000000000000'] },
    ]) {
      const { json: lenient } = await nickel(filters, false);
      const { status, json, headers } = await nickel(filters, true);
      t.equal(status, 400);
      t.equal(json.code, 'validation_failed');
      t.equal(headers['cache-control'], 'no-store');
      t.ok(json.errors.length > 0);
      t.same(
        json.errors,
        lenient.$metadata.warnings.map(({ pointer, code, detail }: Record<string, string>) => ({
          pointer,
          code,
          detail,
        })),
      );
      t.ok(json.errors.every((each: { code: string }) => each.code === 'unmatched_value'));
    }
  },
);

t.test('strict names near values in the detail', async (t) => {
  const [violation] = violationsOf(await nickel({ products: ['Nickel briquet'] }, true));
  t.equal(violation?.pointer, '/filters/products/0');
  t.match(violation?.detail, 'Nickel briquette');
});

t.test('strict does not mind a known value that leads to no record', async (t) => {
  const filters = { products: ['Nickel briquette'], countries: ['China'] };
  const { status, json } = await nickel(filters, true);
  t.same([status, json.$metadata.count], [200, 0]);
});
