import '../process/first-process.ts';

// Loaded later, since the modules of the commands take some 100 ms to load.
await import('./run.ts');
