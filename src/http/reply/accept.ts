import type { FastifyRequest } from 'fastify';
import { needlessParameters } from '../../contract/request/query.ts';
import { VIOLATIONS_MAX } from '../../contract/request/validate.ts';
import { FORMAT_NAMES, FORMATS, type Format } from '../../contract/schemas/formats.ts';
import { eitherOf, Problem } from '../../errors.ts';
import { preferredType } from '../../std/negotiation.ts';
import { codingOf } from './send.ts';

const notAcceptable = (offered: readonly string[]): Problem =>
  new Problem('not_acceptable', `Accept ${eitherOf(offered)}`);

/**
 * Refuses a request whose headers do not admit JSON, where there is nothing else, or no coding.
 * @throws Problem `not_acceptable`
 */
export function checkAcceptsJson(request: FastifyRequest): void {
  const offered = [FORMATS.json.media];
  if (preferredType(request.headers.accept, offered) === undefined) throw notAcceptable(offered);
  codingOf(request);
}

/**
 * Refuses a request for all that an address has, where it asks for something else: for no JSON, or
 * for a part of it by parameters, which would be passed over.
 * @throws Problem `not_acceptable`, `validation_failed`
 */
export function checkNoChoice(request: FastifyRequest): void {
  checkAcceptsJson(request);
  const broken = needlessParameters(request.url);
  if (broken.length === 0) return;
  throw new Problem('validation_failed', 'This address takes no parameters; errors names each', {
    errors: broken.slice(0, VIOLATIONS_MAX),
  });
}

/** The formats of the feed, the one that is sent without a wish first. */
const FEED_FORMATS = ['json', 'ndjson'] as const;

/**
 * The format that a client wants changes in, by its Accept header.
 * @throws Problem `not_acceptable` that names what there is
 */
export function listFormatOf({ headers }: FastifyRequest): (typeof FEED_FORMATS)[number] {
  const offered = FEED_FORMATS.map((name) => FORMATS[name].media);
  const media = preferredType(headers.accept, offered);
  const format = FEED_FORMATS.find((name) => FORMATS[name].media === media);
  if (format === undefined) throw notAcceptable(offered);
  return format;
}

const OFFERED = FORMAT_NAMES.map((name) => FORMATS[name].media);

/**
 * The format that a client wants prices in, by its Accept header.
 * @throws Problem `not_acceptable` that names what there is
 */
export function formatOf({ headers }: FastifyRequest): Format {
  const media = preferredType(headers.accept, OFFERED);
  const format = FORMAT_NAMES.find((name) => FORMATS[name].media === media);
  if (format === undefined) throw notAcceptable(OFFERED);
  return format;
}
