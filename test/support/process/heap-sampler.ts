import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

// Loaded into a service before its own code: at SIGUSR2 it says what is left after a collection,
// and how much of it is compiled code, of which V8 makes more for as long as anything is called.
setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as (options: object) => void;

/** A collection that returns free pages to the system as well. */
const collect = (): void => gc({ type: 'major', flavor: 'last-resort' });

/** The spaces of the heap that hold bytecode, machine code and what belongs to it. */
const CODE = /^(shared_)?(code|trusted)_/;

function tell(): void {
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
  // What was let go by what was collected is collected in a turn of its own.
  setImmediate(tell);
});
