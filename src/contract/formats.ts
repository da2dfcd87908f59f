/** The formats of prices: the media type that a client accepts, and the type that is sent. */
export const FORMATS = {
  json: { media: 'application/json', type: 'application/json; charset=utf-8' },
  csv: { media: 'text/csv', type: 'text/csv; charset=utf-8; header=present' },
  ndjson: { media: 'application/x-ndjson', type: 'application/x-ndjson; charset=utf-8' },
} as const;

export type Format = keyof typeof FORMATS;

/** The formats, the one that is sent without a wish first. */
export const FORMAT_NAMES = Object.keys(FORMATS) as readonly Format[];
