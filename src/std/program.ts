/** The command name in help and messages: of the installed package, or of a checkout. */
export const PROGRAM: string = /[\\/]node_modules[\\/]/.test(import.meta.filename)
  ? 'commodity-prices'
  : './prices';
