import t from 'tap';
import { loadingDatabase, pricesOf } from '../support/loading.ts';
import { loadTable } from './support.ts';

t.test('prices, products and values of the mapping fill an empty market', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const mapping = (name: string) => `
code: { column: Code }
date: { column: Date }
mid: Price
products:
  - { market: nickel, name: Nickel dust, alias: Ni dust, chemicalCode: Ni, isSustainable: false }
values:
  - { dimension: purity, name: 99.99% Ni min }
prices:
  - code: XX-NI-9
    market: nickel
    name: ${name}
    product: Nickel dust
    priceCategory: Spot
    priceType: Price
    frequency: Weekly
    currency: USD
    unitOfMeasure: kg
    purity: 99.99% Ni min
    region: null
    specification: [{ name: basis, value: as published }]
`;
  const text = 'Code,Date,Price\nxx-ni-9,2026-01-08,22\n';
  t.match(await loadTable(t, client, mapping('Nickel dust, spot'), text), {
    status: 'applied',
    counts: { inserted: 1, pricesAdded: 1 },
  });
  t.match(await pricesOf(pool), [
    {
      code: 'XX-NI-9',
      market: 'nickel',
      name: 'Nickel dust, spot',
      unit: 'Kilogram',
      purity: '99.99% Ni min',
      specification: [{ name: 'basis', value: 'as published', order: 1 }],
    },
  ]);
  const other = await loadTable(t, client, mapping('Another name'), text);
  t.match(other, {
    status: 'refused',
    errors: [{ file: 'mapping.yaml', line: 10, column: 'name', code: 'correction_not_allowed' }],
  });
  const wrong = mapping('x').replace('region: null', 'region: Atlantis').replaceAll('NI-9', 'NI-8');
  t.match(await loadTable(t, client, wrong, text.replace('ni-9', 'ni-8')), {
    status: 'refused',
    errors: [{ file: 'mapping.yaml', line: 10, column: 'region', value: 'Atlantis' }],
  });
  const none = await loadTable(
    t,
    client,
    mapping('x').split('products:')[0] ?? '',
    'Code,Date,Price\nXX-NI-7,2026-01-08,22\n',
  );
  t.match(none.errors, [{ line: 2, value: 'XX-NI-7', code: 'unknown_code' }]);
});
