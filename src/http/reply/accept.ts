import type { FastifyRequest } from 'fastify';
import { needlessParameters } from '../../contract/request/query.ts';
import { FORMAT_NAMES, FORMATS, type Format } from '../../contract/schemas/formats.ts';
import { eitherOf, Problem, VIOLATIONS_MAX } from '../../errors.ts';
import { preferredType } from '../../std/negotiation.ts';
import { codingOf } from './send.ts';

/**
 * Checks that a request accepts JSON and a content coding, for routes with JSON only.
 * @throws Problem `not_acceptable`
 */
export function checkAcceptsJson(request: FastifyRequest): void {
  const offered = [FORMATS.json.media];
  if (preferredType(request.headers.accept, offered) === undefined) throw notAcceptable(offered);
  codingOf(request);
}

const notAcceptable = (offered: readonly string[]): Problem =>
  new Problem('not_acceptable', `Accept ${eitherOf(offered)}`);

/**
 * Checks that a request accepts JSON and has no parameters, which would be ignored.
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

/** Formats of the feed; the first is the default. */
const FEED_FORMATS = ['json', 'ndjson', 'csv'] as const;

export type ListFormat = (typeof FEED_FORMATS)[number];

/**
 * Negotiates the format of changes by the Accept header.
 * @throws Problem `not_acceptable` that names the formats
 */
export function listFormatOf({ headers }: FastifyRequest): ListFormat {
  const offered = FEED_FORMATS.map((name) => FORMATS[name].media);
  const media = preferredType(headers.accept, offered);
  const format = FEED_FORMATS.find((name) => FORMATS[name].media === media);
  if (format === undefined) throw notAcceptable(offered);
  return format;
}

const OFFERED = FORMAT_NAMES.map((name) => FORMATS[name].media);

/**
 * Negotiates the format of prices by the Accept header.
 * @throws Problem `not_acceptable` that names the formats
 */
export function formatOf({ headers }: FastifyRequest): Format {
  const media = preferredType(headers.accept, OFFERED);
  const format = FORMAT_NAMES.find((name) => FORMATS[name].media === media);
  if (format === undefined) throw notAcceptable(OFFERED);
  return format;
}
