/** Characters that no text of ours holds: controls, line separators, halves of a character. */
const UNFIT = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;

/** Whether a text says something, within a length and in characters that may be shown anywhere. */
export const isFit = (text: string, lengthMax: number): boolean =>
  text.trim() !== '' && text.length <= lengthMax && !UNFIT.test(text);

/** Whether a text may be a name, or what stands beside one. */
export const isLabel = (text: string): boolean => isFit(text, 200);

export const NO_LABEL = 'The text is empty, too long (200 characters), or holds control characters';
