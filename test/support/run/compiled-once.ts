import { setFlagsFromString } from 'node:v8';

// Loaded into a service before its own code: each function is compiled once, at its first call.
// Otherwise the type feedback of V8 grows for an hour, and hides a leak of the service.
setFlagsFromString('--always-sparkplug');
setFlagsFromString('--no-lazy-feedback-allocation');
setFlagsFromString('--no-flush-bytecode');
setFlagsFromString('--no-maglev');
setFlagsFromString('--no-opt');
