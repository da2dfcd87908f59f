import type { Principal } from '../auth/principal.ts';
import { Problem } from '../errors.ts';

/** Who keeps a place until when, by the clock of `performance.now`. */
interface Place {
  readonly untilMs: number;
}

/** Takes a place for a time at most; returns how to give it back. */
type TakePlace = (principal: Principal, forMs: number) => () => void;

/**
 * Places for requests that take their time, so many for each principal.
 * @returns a function that throws Problem `too_many_concurrent_requests` when all are taken; its
 *   Retry-After is when the first of them is free for certain
 */
export function placesFor(most: number): TakePlace {
  const taken = new Map<string, Set<Place>>();
  return ({ kind, id }, forMs) => {
    const name = `${kind} ${id}`;
    const places = taken.get(name) ?? new Set();
    const nowMs = performance.now();
    if (places.size >= most) {
      const freeMs = Math.min(...[...places].map((each) => each.untilMs)) - nowMs;
      const seconds = Math.max(1, Math.ceil(freeMs / 1000));
      const detail = `${most} requests of this credential wait already; wait for one of them`;
      throw new Problem('too_many_concurrent_requests', detail, {
        headers: { 'retry-after': String(seconds) },
      });
    }
    const place: Place = { untilMs: nowMs + forMs };
    places.add(place);
    taken.set(name, places);
    return () => {
      places.delete(place);
      if (places.size === 0 && taken.get(name) === places) taken.delete(name);
    };
  };
}
