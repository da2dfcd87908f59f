import t from 'tap';
import { dataFolder, prices } from '../support/process/programs.ts';

const ARGS = ['token', 'create', '--scope', 'prices:*'];
const DATABASE_URL = 'postgres://127.0.0.1:1/none';

t.test('a token that only a service of this folder accepts is marked as such', async (t) => {
  const DATA_DIR = await dataFolder(t);
  const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+\n$/;
  const stderr =
    `Signed with the development secret in ${DATA_DIR}: only a service that was ` +
    'started on this folder, without DATABASE_URL and settings of tokens, takes it.\n';
  t.match(await prices(t, { DATA_DIR }, ...ARGS), { code: 0, stdout: TOKEN, stderr });
  const env = { DATA_DIR, JWT_SECRET: 'a secret of thirty-two bytes or more' };
  t.match(await prices(t, env, ...ARGS), { code: 0, stdout: TOKEN, stderr: /^$/ });
});

t.test('a token that cannot be signed is refused with the name of the setting', async (t) => {
  const refused: [Record<string, string>, RegExp][] = [
    [{ JWT_JWKS_URL: 'https://issuer.example/keys' }, /^JWT_JWKS_URL: set, so /],
    [{ JWT_PUBLIC_KEY_FILE: 'issuer.pem' }, /^JWT_PUBLIC_KEY_FILE: set, so /],
    [{ JWT_PUBLIC_KEY_FILE: 'issuer.pem', DATABASE_URL }, /^JWT_PUBLIC_KEY_FILE: set, so /],
    [{ DATABASE_URL }, /^JWT_SECRET: not set here; /],
  ];
  for (const [env, message] of refused) {
    const { code, stdout, stderr } = await prices(t, env, ...ARGS);
    t.same([code, stdout], [2, '']);
    t.match(stderr.replace(/^commodity-prices: /, ''), message);
  }
});
