// Runs a script for Google Sheets, the first argument, and then its function updatePrices, with
// stand-ins for Google's objects. Prints what is in the sheet at the end as JSON.
import { execFileSync } from 'node:child_process';
import { runInNewContext } from 'node:vm';

let sheet = [['old']];

const SHEET = {
  clearContents: () => {
    sheet = [];
  },
  getRange: (row, column, height, width) => ({
    setValues: (values) => {
      const fits = values.length === height && values.every((each) => each.length === width);
      if (row !== 1 || column !== 1 || !fits) throw new Error('the range has another size');
      sheet = values;
    },
  }),
};

/** Sends a request by curl, since UrlFetchApp waits for the answer. */
function fetch(address, { headers, muteHttpExceptions }) {
  const words = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const text = execFileSync(
    'curl',
    ['-sS', '-w', '\n%{http_code} %{content_type}', ...words, address],
    {
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    },
  );
  const [, body, code, type] = /^(.*)\n(\d+) (.*)$/s.exec(text);
  const status = Number(code);
  if (status >= 400 && !muteHttpExceptions) throw new Error(`${address} answered ${status}`);
  return {
    getResponseCode: () => status,
    getContentText: () => body,
    getBlob: () => ({ getContentType: () => type || null }),
  };
}

const parseCsv = (text) =>
  text
    .trimEnd()
    .split('\r\n')
    .map((line) =>
      [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
        ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain,
      ),
    );

try {
  runInNewContext(`${process.argv[2]}\nupdatePrices();`, {
    PropertiesService: {
      getScriptProperties: () => ({ getProperty: (name) => process.env[name] ?? null }),
    },
    UrlFetchApp: { fetch },
    Utilities: { parseCsv },
    SpreadsheetApp: {
      getActiveSpreadsheet: () => ({
        getSheetByName: (name) => (name === 'Prices' ? SHEET : null),
      }),
    },
  });
} catch (error) {
  console.error(error.message);
}
process.stdout.write(JSON.stringify(sheet));
