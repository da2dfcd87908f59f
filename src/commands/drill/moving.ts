/** Data was loaded while it was dumped: what was compared would be another state. */
export class MovingDataError extends Error {
  override readonly name = 'MovingDataError';
  readonly exitCode = 1;
}
