#!/usr/bin/env node
// The command of the installed package. A Node that is too old ends here with a sentence.
import './node-version.js';

// Without a command it serves: the first thing that anybody who installs it wants to see.
if (process.argv.length === 2) process.argv.push('serve');
if (process.exitCode === undefined) await import('./main.js');
