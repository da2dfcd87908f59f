import { setFlagsFromString } from 'node:v8';

// Loaded into a service before its own code: each function is compiled when it is first called, and
// not again. What V8 learns about those that are called often grows for an hour otherwise, and in
// minutes it hides what the service itself does not let go of.
setFlagsFromString('--always-sparkplug');
setFlagsFromString('--no-lazy-feedback-allocation');
setFlagsFromString('--no-flush-bytecode');
setFlagsFromString('--no-maglev');
setFlagsFromString('--no-opt');
