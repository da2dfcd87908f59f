/**
 * The name that help and messages call the command line by: the one of the installed package, or
 * the script of a checkout.
 */
export const PROGRAM: string = /[\\/]node_modules[\\/]/.test(import.meta.filename)
  ? 'commodity-prices'
  : './prices';
