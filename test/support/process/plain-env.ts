/** npm variables of the machine's registry, which a nested npm needs. */
const REGISTRY =
  /^(npm_config_(globalconfig|userconfig|registry|cache|cafile|.*proxy)|NODE_EXTRA_CA_CERTS)$/i;

/** Variables that npm, Node and tap set for this project and its tests. */
const PROJECT_VARIABLES = /^(npm_|NODE_|_?TAP|TEST_)/i;

/** The environment of a program of another project. */
export const PLAIN_ENV: Readonly<Record<string, string | undefined>> = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => REGISTRY.test(name) || !PROJECT_VARIABLES.test(name),
  ),
);
