/** An archive, or a database to take one in, that is not as it must be; nothing was written. */
export class ArchiveRefusal extends Error {
  override readonly name = 'ArchiveRefusal';
  readonly exitCode = 3;
}

/** A folder that an archive cannot be written into. */
export class FolderRefusal extends Error {
  override readonly name = 'FolderRefusal';
  readonly exitCode = 2;
}

/** Progress of an export or import. */
export interface ArchiveProgress {
  /** The table that is written or read, or the file that is checked. */
  readonly what: string;
  readonly done: number;
  readonly total: number;
  readonly unit: 'rows' | 'bytes';
}
