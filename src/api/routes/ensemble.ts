import { ensembleChangeSchema } from '../../config/ensemble-change.js'
import { type ErrorCode, GantryError } from '../../errors.js'
import { ensembleSchema } from '../ensemble-schema.js'
import { HttpError } from '../errors.js'
import { route } from '../route.js'

/** What is wrong with an ensemble is wrong with the request that names it. */
const codesOfEnsemble: readonly ErrorCode[] = [
  'GANTRY_LABELS',
  'GANTRY_MODEL_CONFIG',
  'GANTRY_MODEL_INVALID',
  'GANTRY_MODEL_LABELS',
  'GANTRY_HEAD_UNKNOWN',
]

class UnusableEnsembleError extends HttpError {
  readonly code: ErrorCode
  readonly status = 400
  readonly hint: string
  constructor(cause: GantryError) {
    super(cause.message, { cause })
    this.name = 'UnusableEnsembleError'
    this.code = cause.code
    this.hint = cause.hint
  }
}

/** Which ensemble the cameras run. */
export const ensembleRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/ensemble',
    auth: 'token',
    tag: 'operations',
    summary: 'The ensemble of the cameras, and how a change of it goes',
    responses: { 200: { description: 'The ensemble.', schema: ensembleSchema } },
    problems: [],
    handle: ({ context }) => ({ body: context.gantry.ensemble() }),
  }),
  route({
    method: 'PUT',
    path: '/api/v1/ensemble',
    auth: 'token',
    tag: 'operations',
    summary: 'Give the cameras another ensemble on trial; a worse one is taken back',
    bodySchema: ensembleChangeSchema,
    responses: { 202: { description: 'Begun; GET tells how it goes.', schema: ensembleSchema } },
    problems: [400, 404, 409, 415, 503],
    handle: async ({ body, context }) => {
      try {
        return { status: 202, body: await context.gantry.changeEnsemble(body) }
      } catch (error) {
        if (error instanceof GantryError && codesOfEnsemble.includes(error.code))
          throw new UnusableEnsembleError(error)
        throw error
      }
    },
  }),
]
