/** The part of Node that the clients use. */
declare const process: { readonly env: Readonly<Record<string, string | undefined>> };
