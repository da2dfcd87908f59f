import { execFile, execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const CLIENT = fileURLToPath(new URL('../../../clients/python', import.meta.url));

/** The interpreter itself: the command on the path may be a slower wrapper script. */
const PYTHON = execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], {
  encoding: 'utf8',
}).trim();

const hasPandas = (program: string): boolean => {
  try {
    execFileSync(program, ['-c', 'import pandas'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

/** A Python with pandas, from the path or the system; null if neither has it. */
export const PANDAS_PYTHON = [PYTHON, '/usr/bin/python3'].find(hasPandas) ?? null;

/** The outcome of a Python program. */
export interface PythonRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a Python program that can import the client; every warning is shown. */
export const python = (
  program: string,
  env: Readonly<Record<string, string>> = {},
  { file = PYTHON, timeout = 60_000 } = {},
): Promise<PythonRun> =>
  new Promise((resolve) => {
    const own = {
      PATH: process.env['PATH'] ?? '',
      PYTHONPATH: CLIENT,
      PYTHONDONTWRITEBYTECODE: '1',
    };
    const options = { env: { ...own, ...env }, maxBuffer: 64 * 1024 * 1024, timeout };
    execFile(file, ['-W', 'always', '-c', program], options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
      resolve({ code, stdout, stderr });
    });
  });
