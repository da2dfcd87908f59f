/** How each way to compress begins, in hexadecimal, and what unpacks it. */
const PACKINGS = [
  { name: 'gzip', begin: /^1f8b/, unpack: 'zcat FILE' },
  { name: 'zip', begin: /^504b(?:0304|0506|0708)/, unpack: 'unzip -p FILE' },
  // Also with a frame before the first that holds data, as pzstd writes it.
  { name: 'zstd', begin: /^(?:28b52ffd|5[0-9a-f]2a4d18)/, unpack: 'zstdcat FILE' },
  { name: 'xz', begin: /^fd377a585a00/, unpack: 'xzcat FILE' },
  // Three letters and a digit may begin any text: what follows them tells.
  { name: 'bzip2', begin: /^425a683[1-9](?:314159265359|177245385090)/, unpack: 'bzcat FILE' },
];
const BEGIN_BYTES = 10;

/** Bytes that are compressed, so that nothing can be found in them. */
export class PackedError extends Error {
  override readonly name = 'PackedError';
}

function check(begin: Buffer): void {
  const digits = begin.toString('hex', 0, BEGIN_BYTES);
  const packing = PACKINGS.find((each) => each.begin.test(digits));
  if (packing === undefined) return;
  throw new PackedError(
    `it is compressed (${packing.name}): unpack it first, or pipe it in, as by ` +
      `${packing.unpack} | npm run --silent prices -- keys scan -`,
  );
}

/**
 * Hands on bytes as they come, the first of them when there are enough to tell what they are.
 * @throws PackedError when they are compressed
 */
export async function* unpackedOnly(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let begin: Buffer | null = Buffer.alloc(0);
  for await (const chunk of chunks) {
    if (begin !== null) begin = Buffer.concat([begin, chunk]);
    if (begin !== null && begin.length < BEGIN_BYTES) continue;
    if (begin !== null) check(begin);
    yield begin ?? chunk;
    begin = null;
  }
  if (begin === null) return;
  check(begin);
  yield begin;
}
