#!/usr/bin/env node
// The command of the installed package. A Node version that is too old is reported first.
import './node-version.js';

// Without arguments it starts the service.
if (process.argv.length === 2) process.argv.push('serve');
if (process.exitCode === undefined) await import('./main.js');
