import { wallMs } from '../../lifecycle/clock.js'
import { coverageBody } from '../coverage-body.js'
import { coverageQuerySchema, coverageRange, coverageSchema } from '../coverage-schema.js'
import { route } from '../route.js'

/** How much of the time cameras were watched, and why not. */
export const coverageRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/coverage',
    auth: 'token',
    tag: 'results',
    summary: 'Time of the cameras, watched and blind with the cause: sums and spans',
    querySchema: coverageQuerySchema,
    responses: { 200: { description: 'The time asked for, as far as it is known.', schema: coverageSchema } },
    problems: [400, 404],
    handle: async ({ query, context }) => {
      const { cameraId, spans: withSpans } = query
      const view = await context.gantry.coverage({ cameraId, ...coverageRange(query, wallMs()), withSpans })
      // Of one that was removed there is time still.
      if (cameraId !== undefined && view.items.length === 0) await context.gantry.camera(cameraId)
      return { body: coverageBody(view) }
    },
  }),
]
