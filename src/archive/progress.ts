/** How far an export or import has come. */
export interface ArchiveProgress {
  /** The table that is written or read, or the file that is checked. */
  readonly what: string;
  readonly done: number;
  readonly total: number;
  readonly unit: 'rows' | 'bytes';
}
