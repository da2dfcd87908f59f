/**
 * What Node is told when it runs the service. The part of its heap where objects are young would
 * grow to twice as much by itself, and a process that was busy once keeps that. `npm start` and the
 * image name it too: it counts from the start.
 */
export const NODE_FLAGS: readonly string[] = ['--max-semi-space-size=16'];
