import { exitCodeOf, report } from '../process/failure.ts';
import { makeProgram } from './program.ts';
import { rejectRemoved } from './removed.ts';

// A reader such as head may close the pipe early.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit();
  throw error;
});

try {
  const words = process.argv.slice(2);
  rejectRemoved(words);
  const program = await makeProgram(words);
  await program.parseAsync();
} catch (error) {
  report(error);
  process.exitCode = exitCodeOf(error);
}
