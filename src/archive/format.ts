/** Progress of an export or import. */
export interface ArchiveProgress {
  /** The current table, or the file that is checked. */
  readonly item: string;
  readonly done: number;
  readonly total: number;
  readonly unit: 'rows' | 'bytes';
}

/** File name of the manifest; a folder without it is not an archive. */
export const MANIFEST_FILE = 'manifest.json';
