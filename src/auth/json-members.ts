/** Strings and brackets of a JSON text; numbers, words and commas between them do not matter. */
const TOKEN = /"(?:[^"\\]|\\.)*"(\s*:)?|[{}]/gs;

/**
 * Whether any object of a JSON text names a member twice. JSON.parse keeps the last one silently,
 * other parsers the first: a signed text must not mean two things.
 *
 * @param json a text that JSON.parse accepts
 */
export function hasDuplicateMembers(json: string): boolean {
  const open: Set<string>[] = [];
  for (const [token, colon] of json.matchAll(TOKEN)) {
    if (token === '{') open.push(new Set());
    else if (token === '}') open.pop();
    else if (colon !== undefined) {
      const name: string = JSON.parse(token.slice(0, -colon.length));
      const names = open.at(-1);
      if (names?.has(name)) return true;
      names?.add(name);
    }
  }
  return false;
}
