/** The format of the batches of sample data in the ledger. No file has it. */
export const SEED_FORMAT = 'seed';
