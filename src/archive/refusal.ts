/** An archive, or a database to take one in, that is not as it must be; nothing was written. */
export class ArchiveRefusal extends Error {
  override readonly name = 'ArchiveRefusal';
}

/** A folder that an archive cannot be written into. */
export class FolderRefusal extends Error {
  override readonly name = 'FolderRefusal';
}
