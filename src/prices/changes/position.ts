/** A place in the feed: every change of an epoch up to and with a number. */
export interface Position {
  readonly epoch: string;
  /** Number of the last change before the place; "0" is the beginning. */
  readonly number: string;
}

/** A position as it is on the wire, `<epoch>.<number>`. */
export const positionText = ({ epoch, number }: Position): string => `${epoch}.${number}`;

/** The position of a text that has the form of one. */
export function positionOf(text: string): Position {
  const [epoch = '', number = ''] = text.split('.');
  return { epoch, number };
}
