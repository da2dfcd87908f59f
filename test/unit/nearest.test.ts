import t from 'tap';
import { nearest } from '../../src/catalog/nearest.ts';

t.test('a name that begins with what was sent is offered first', async (t) => {
  const names = ['99.8% In', '99.8% Ni min', '99.9% Ni', '99.95% Ni'];
  t.equal(nearest('99.8% Ni', names, 3)[0], '99.8% Ni min');
  t.equal(nearest('99.8% ni', names, 1)[0], '99.8% Ni min', 'whatever its case');
  t.strictSame(
    nearest('price', ['prices', 'prize', 'priceType'], 3),
    ['prices', 'priceType', 'prize'],
    'of several the nearest',
  );
  t.equal(nearest('99.8% Nj', names, 1)[0], '99.8% In', 'of others the one with fewest edits');
});
