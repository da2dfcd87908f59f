import type { OnHeld } from '../../db/connection.ts';
import type { Listed, Values } from '../preview.ts';
import type { LoadProblem } from '../problems.ts';

/** The points to be withdrawn: those of a price, or what a CSV file of code and date names. */
export type Selection =
  | { readonly file: string }
  | {
      readonly code: string;
      /** These days; each has to have a value. */
      readonly dates: readonly string[];
    }
  | {
      readonly code: string;
      /** The days from one to another; null for no bound. */
      readonly from: string | null;
      readonly to: string | null;
    };

export interface WithdrawalRequest {
  readonly selection: Selection;
  /** Who withdraws. */
  readonly actor: string;
  readonly reason: string;
  /** Stops before anything is written. */
  readonly dryRun?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with the sessions that hold the lock of writers, when the wait for it takes long. */
  readonly onHeld?: OnHeld | undefined;
  /** Told what will be withdrawn before it is. */
  readonly onPreview?: ((points: WithdrawnPoints) => void) | undefined;
}

/** A point that is withdrawn, with the value that it has until then. */
interface WithdrawnPoint {
  readonly code: string;
  readonly date: string;
  readonly before: Values;
}

/** The first of the points, in the order of codes and dates. */
export type WithdrawnPoints = Listed<WithdrawnPoint>;

/** What became of a withdrawal. */
export interface WithdrawalReport {
  /** `refused`: nothing changed, `errors` say why. `previewed`: a dry run. */
  readonly status: 'applied' | 'refused' | 'previewed';
  /** Its number in the ledger; null when nothing changed. */
  readonly batch: number | null;
  /** As an answer of the service shows it. */
  readonly revision: string | null;
  readonly points: WithdrawnPoints;
  readonly errors: readonly (Omit<LoadProblem, 'file'> & { readonly file: string | null })[];
  readonly errorsTotal: number;
}
