import fc from 'fast-check';
import t from 'tap';
import { codeKey } from '../../src/catalog/match-key.ts';

/** Lower-cases the 26 letters one by one. */
const byLetter = (code: string): string =>
  [...code].map((each) => (/^[A-Z]$/.test(each) ? each.toLowerCase() : each)).join('');

t.test('the key of a code ignores the case of the 26 letters, and of no other', async (t) => {
  t.equal(codeKey('CP-NI-0001a'), 'cp-ni-0001a');
  // Lower case has other letters of İ, K (Kelvin) and Σ: they are not those of a code.
  for (const code of ['İX', '\u212aG', 'ΣA', 'ÅZ', 'ＡB']) t.equal(codeKey(code), byLetter(code));
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: 'grapheme' }),
    fc.string({ unit: 'binary' }),
  );
  fc.assert(
    fc.property(text, (code) => codeKey(code) === byLetter(code)),
    { numRuns: 2_000 },
  );
});
