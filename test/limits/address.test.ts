import t from 'tap';
import { clientNetwork } from '../../src/limits/limits.ts';

t.test('a client is its IPv4 address, or the /64 of its IPv6 one', async (t) => {
  const networks: Readonly<Record<string, string>> = {
    '192.0.2.7': '192.0.2.7',
    '::ffff:192.0.2.7': '192.0.2.7',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
    '2001:db8:1:2::1': '2001:db8:1:2::/64',
    '2001:0db8:0001:0002:ffff:ffff:ffff:ffff': '2001:db8:1:2::/64',
    '2001:db8::1': '2001:db8:0:0::/64',
    '::1': '0:0:0:0::/64',
    'fe80::1%eth0': 'fe80:0:0:0::/64',
  };
  for (const [address, network] of Object.entries(networks)) {
    t.equal(clientNetwork(address), network, address);
  }
});
