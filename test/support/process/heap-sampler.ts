import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

// Preloaded into a service: SIGUSR2 prints the heap after a garbage collection. Compiled code is
// counted apart, because V8 keeps compiling hot functions.
setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as (options: object) => void;

/** Collects garbage and returns free pages to the system. */
const collect = (): void => gc({ type: 'major', flavor: 'last-resort' });

/** Heap spaces of bytecode, machine code and their metadata. */
const CODE = /^(shared_)?(code|trusted)_/;

function printHeap(): void {
  collect();
  const spaces = getHeapSpaceStatistics();
  const used = (isCode: boolean): number =>
    spaces
      .filter(({ space_name: name }) => CODE.test(name) === isCode)
      .reduce((sum, { space_used_size: size }) => sum + size, 0);
  process.stderr.write(`heap ${used(false)} code ${used(true)}\n`);
}

process.on('SIGUSR2', () => {
  collect();
  // A second collection frees objects that finalizers of the first one released.
  setImmediate(printHeap);
});
