import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const CLIENT = fileURLToPath(new URL('../../../clients/python', import.meta.url));

/** What a Python program did. */
export interface PythonRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a Python program that can import the client; every warning is shown. */
export const python = (
  program: string,
  env: Readonly<Record<string, string>> = {},
): Promise<PythonRun> =>
  new Promise((resolve) => {
    const own = {
      PATH: process.env['PATH'] ?? '',
      PYTHONPATH: CLIENT,
      PYTHONDONTWRITEBYTECODE: '1',
    };
    const options = { env: { ...own, ...env }, maxBuffer: 64 * 1024 * 1024, timeout: 60_000 };
    execFile('python3', ['-W', 'always', '-c', program], options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
      resolve({ code, stdout, stderr });
    });
  });
