import type { TestDatabase } from './database.ts';

/**
 * Copies the sample rates to the source ECB, so that answers of documented requests have no warning
 * about sample rates.
 */
export async function publishRates({ pool }: TestDatabase): Promise<void> {
  await pool.query(`
    do $$ begin
      perform open_revision('published rates of a test');
      insert into fx_source (slug, name, base_currency_id, is_sample)
        select 'ECB', 'European Central Bank', base_currency_id, false
        from fx_source where slug = 'SAMPLE' on conflict do nothing;
      insert into fx_rate (source, currency_id, date, rate)
        select 'ECB', currency_id, date, rate from fx_rate where source = 'SAMPLE';
    end $$`);
}
