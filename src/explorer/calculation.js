// Calculations: a draft is what the form shows, a body is what the service gets and a link holds.
import { anchorFor, today } from './dates.js';

/** Most inputs of a calculation. */
export const INPUTS_MAX = 20;

/** The members of each kind of input. The first one is its mark. */
const MEMBERS = { price: 'code', rate: 'rate', number: 'value' };

/** The names of functions in a formula, which no input has. */
const FUNCTIONS = ['min', 'max', 'abs', 'round', 'step', 'if'];

const NAME = /^[A-Za-z][A-Za-z0-9_]{0,31}$/;

/** True for a name that an input may have. */
export const isName = (text) => NAME.test(text) && !FUNCTIONS.includes(text);

let inputs = 0;

/** An input of a draft. Its id stays while its name changes. */
export function inputOf(name, kind, members = {}) {
  inputs += 1;
  return { id: inputs, name, kind, members };
}

/** A name that no other input has: `nickel`, `nickel2`. */
export function freeName(wanted, draft) {
  const names = new Set(draft.inputs.map(({ name }) => name));
  const base = isName(wanted) ? wanted : 'price';
  if (!names.has(base)) return base;
  let at = 2;
  while (names.has(`${base}${at}`)) at += 1;
  return `${base}${at}`;
}

/** The name of an input for a price of a market: `nickel`. */
export const nameOfMarket = (market) =>
  market
    .replace(/-(\w)/g, (_all, letter) => letter.toUpperCase())
    .replace(/\W/g, '')
    .slice(0, 24);

/** Most payables of a calculation. */
export const PAYABLES_MAX = 6;

/** A payable of a draft. Its content is in percent of the material. */
export function payableOf(code = '', { content = '', side = '' } = {}) {
  inputs += 1;
  return { id: inputs, code, content: String(content), side };
}

/** The change to a draft that values a payable by its reference, which the service knows. */
export const valuedBy = (code) => ({
  formula: '',
  inputs: [],
  payables: [payableOf(code)],
  // The references of a material are published in several units, which have no sum.
  shared: { period: 'S', referencePeriod: 'M-1', currency: '', unitOfMeasure: 't' },
});

/** A draft without inputs. */
export const emptyDraft = () => ({
  payables: null,
  shared: {},
  formula: '',
  inputs: [],
  anchor: today(),
  series: null,
  result: { unit: '', decimals: '', mode: '' },
  options: {},
});

/** The unit of a price as a calculation writes it: `USD/t`; null for a payable. */
const unitOfPrice = ({ currency, unitOfMeasure }) =>
  currency && `${currency.iso}/${unitOfMeasure?.symbol ?? unitOfMeasure?.name}`;

const priceAt = (price, period, side) =>
  inputOf(price ? nameOfMarket(price.market) : 'price', 'price', {
    code: price?.code ?? '',
    period,
    ...(side ? { side } : {}),
  });

/** The draft of each template, of a price: `market` and the members of its record; or of none. */
const DRAFTS = {
  average: (price) => ({ inputs: [priceAt(price, 'M-1')] }),
  payable: () => ({
    formula: 'payable * reference * content',
    inputs: [
      inputOf('payable', 'price', { code: '', period: 'S' }),
      inputOf('reference', 'price', { code: '', period: 'M-1' }),
      inputOf('content', 'number', { value: '18', unit: '%', note: '' }),
    ],
  }),
  formula(price) {
    const input = priceAt(price, 'M-1');
    const unit = (price && unitOfPrice(price)) ?? 'USD/t';
    return {
      formula: `${input.name} * (1 - discount) + premium`,
      inputs: [
        input,
        inputOf('discount', 'number', { value: '2', unit: '%', note: '' }),
        inputOf('premium', 'number', { value: '150', unit, note: '' }),
      ],
    };
  },
};

/** The templates with their names. */
export const TEMPLATES = [
  ['average', 'Average of a month'],
  ['payable', 'Payable value'],
  ['formula', 'Formula'],
];

/**
 * The draft of a template.
 * @param price `market` and the members of its record or search result; or null
 */
export function draftFrom(template, price = null) {
  const anchor = anchorFor(price?.lastAssessedAt);
  const draft = { ...emptyDraft(), anchor, ...DRAFTS[template](price) };
  return { ...draft, result: { ...draft.result, decimals: '2' } };
}

const isEmpty = (value) => value === '' || value === null || value === undefined;

/** The members that are set; without any, `undefined`. */
function given(members) {
  const entries = Object.entries(members).filter(([, value]) => !isEmpty(value));
  return entries.length > 0 ? Object.fromEntries(entries) : undefined;
}

const whole = (text) =>
  /^\d+$/.test(text ?? '') ? Number(text) : isEmpty(text) ? undefined : text;

/** An input as the service takes it. A number is sent as text, as it was typed. */
function inputBody({ kind, members }) {
  const { session, average, mode, maxDays, ...others } = members;
  const rounding = given({ session: whole(session), average: whole(average) });
  return {
    [MEMBERS[kind]]: members[MEMBERS[kind]] ?? '',
    ...given({ ...others, maxDays: whole(maxDays) }),
    ...(rounding ? { rounding: { ...rounding, ...given({ mode }) } } : {}),
  };
}

/** The members that only one form of a body has. */
const formOf = ({ payables, shared, formula, inputs: all }) =>
  payables
    ? {
        payables: payables.map(({ code, content, side }) => ({
          code,
          ...given({ content, side }),
        })),
        ...given(shared),
      }
    : {
        ...(formula.trim() ? { formula: formula.trim() } : {}),
        inputs: Object.fromEntries(all.map((each) => [each.name, inputBody(each)])),
      };

/** The body of the request of a draft. */
export function bodyOf(draft) {
  const { anchor, series, result, options } = draft;
  const rules = given({ ...result, decimals: whole(result.decimals) });
  return {
    ...formOf(draft),
    ...(series ? { anchor: series } : anchor ? { anchor } : {}),
    ...(rules ? { result: rules } : {}),
    ...(Object.keys(options).length > 0 ? { options } : {}),
  };
}

const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

const texts = (members) =>
  Object.fromEntries(
    Object.entries(members).map(([name, value]) => [name, isObject(value) ? value : String(value)]),
  );

function inputFrom(name, sent) {
  const kind = 'rate' in sent ? 'rate' : 'value' in sent ? 'number' : 'price';
  const { rounding, ...others } = sent;
  return inputOf(name, kind, { ...texts(others), ...(isObject(rounding) ? texts(rounding) : {}) });
}

/** The body in the long form: the short form of an average is one input. */
function longForm(body) {
  if (typeof body.average !== 'string') return body;
  const { average: code, anchor, result, options, ...members } = body;
  return { inputs: { price: { code, ...members } }, anchor, result, options };
}

/** The payables of a body, with the members that they share; null without any. */
function payablesIn({
  payables,
  formula: _f,
  inputs: _i,
  anchor: _a,
  result: _r,
  options: _o,
  ...shared
}) {
  if (!Array.isArray(payables)) return { payables: null, shared: {} };
  const sent = payables.filter(isObject);
  return {
    payables: sent.map((each) => payableOf(String(each.code ?? ''), each)),
    shared: texts(shared),
  };
}

/** The draft of a body. */
export function draftOf(sent) {
  const body = longForm(sent);
  const sentInputs = isObject(body.inputs) ? Object.entries(body.inputs) : [];
  return {
    ...payablesIn(body),
    formula: typeof body.formula === 'string' ? body.formula : '',
    inputs: sentInputs
      .filter(([, each]) => isObject(each))
      .map(([name, each]) => inputFrom(name, each)),
    anchor: typeof body.anchor === 'string' ? body.anchor : '',
    series: isObject(body.anchor) ? body.anchor : null,
    result: {
      unit: '',
      decimals: '',
      mode: '',
      ...(isObject(body.result) ? texts(body.result) : {}),
    },
    options: isObject(body.options) ? body.options : {},
  };
}

/** The body of the text of a link; an empty one for another text. */
export function bodyIn(text) {
  try {
    const body = JSON.parse(text);
    return isObject(body) ? body : {};
  } catch {
    return {};
  }
}

/** True if a body has an input, and every price and payable of it a code. */
export function isComplete(body) {
  const { inputs: all, payables } = longForm(body);
  if (Array.isArray(payables)) return payables.every((each) => !isObject(each) || each.code !== '');
  if (!isObject(all)) return Object.keys(body).length > 0;
  const members = Object.values(all);
  return members.length > 0 && members.every((each) => !isObject(each) || each.code !== '');
}

/** A formula in which an input has another name. */
export const renamed = (formula, before, after) =>
  isName(before) && isName(after)
    ? formula.replace(new RegExp(`\\b${before}\\b`, 'g'), after)
    : formula;
