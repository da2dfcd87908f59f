import asyncHooks from 'node:async_hooks';
import { syncBuiltinESMExports } from 'node:module';

/*
 * Imported before tap by each process of `npm test`, to save an eighth of its CPU.
 *
 * Tap records by async hooks which test has created each promise, so that an uncaught error fails
 * that test. The service runs without hooks. Without hooks an uncaught error ends the process, or
 * tap reports it for the whole process: in both cases the run fails and prints the stack.
 */
asyncHooks.createHook = () => {
  const hook: asyncHooks.AsyncHook = { enable: () => hook, disable: () => hook };
  return hook;
};
syncBuiltinESMExports();
// Tap switches source maps on, which slows down each error; the stripped types have none.
process.setSourceMapsEnabled(false);
// Tap measures each program that inherits this, which costs 0.7 s of CPU.
delete process.env['NODE_OPTIONS'];
