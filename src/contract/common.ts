import { CHANGE_COMPONENTS } from './changes.ts';
import { COMPONENTS, Me } from './components.ts';
import { POINT_COMPONENTS } from './points.ts';
import { ProblemSchema, ViolationSchema } from './problem.ts';
import { REFERENCE_COMPONENTS } from './reference.ts';

/** Every schema that is not of one market. */
export const COMMON_SCHEMAS = [
  ...COMPONENTS,
  ...POINT_COMPONENTS,
  ...REFERENCE_COMPONENTS,
  ...CHANGE_COMPONENTS,
  Me,
  ViolationSchema,
  ProblemSchema,
];
