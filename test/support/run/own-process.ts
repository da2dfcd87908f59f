import asyncHooks from 'node:async_hooks';
import { syncBuiltinESMExports } from 'node:module';

/*
 * Imported before tap by each process of tests, to save a quarter of its CPU.
 *
 * Tap records the test of each promise by hooks, to name it if the promise throws outside of it.
 * The service runs without hooks. Without them such an error ends the process with its stack, and
 * tap reports the test that was running.
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
