import t from 'tap';
import { errorLines } from '../../../src/cli/load/report.ts';

t.test('a fault is reported with its place, and a column that is its own value once', async (t) => {
  const error = { file: 'a.csv', line: 1, code: 'unknown_column', message: 'No' } as const;
  const errors = [
    { ...error, column: 'code;mid', value: 'code;mid' },
    { ...error, column: 'mid', value: 'x' },
    { ...error, column: 'mid', value: null },
    { ...error, column: null, value: null },
  ];
  t.strictSame(errorLines({ errors, errorsTotal: 4 }), [
    'a.csv:1: "code;mid": No (unknown_column)',
    'a.csv:1: mid "x": No (unknown_column)',
    'a.csv:1: mid: No (unknown_column)',
    'a.csv:1: No (unknown_column)',
  ]);
});
