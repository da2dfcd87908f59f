/** Claims with a meaning of their own (RFC 7519, section 4.1), which never name scopes. */
const REGISTERED: readonly string[] = ['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti'];

const CLAIMS_MAX = 8;

/** The claims of a list such as `roles,scope=prices-api/`, each with the text before its scopes. */
export const scopeClaimsOf = (text: string): { name: string; prefix: string }[] =>
  text.split(',').map((each) => {
    const [name = '', ...prefix] = each.split('=');
    return { name, prefix: prefix.join('=') };
  });

/** The fault of a list of claims; null if it is valid. */
export function scopeClaimsFault(text: string): string | null {
  // Scopes in a text are separated by spaces, so no prefix contains one.
  if (/[^\x21-\x7e]/.test(text)) return 'must have no space and only ASCII characters';
  const claims = scopeClaimsOf(text);
  const names = claims.map(({ name }) => name);
  if (names.includes('')) return 'is not a list of claims such as roles,scope=prices-api/';
  const registered = names.find((name) => REGISTERED.includes(name));
  if (registered !== undefined) return `names ${registered}, which is no claim of scopes`;
  if (new Set(names).size < names.length) return 'names a claim twice';
  return names.length > CLAIMS_MAX ? `must name at most ${CLAIMS_MAX} claims` : null;
}
