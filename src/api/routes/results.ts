import type { RecentQuery } from '../../cache/result-cache.js'
import { suggestion } from '../../config/suggest.js'
import { detectionsPageSchema, eventsPageSchema, pastQuerySchema } from '../past-schemas.js'
import { route } from '../route.js'
import { BadRequestError, UpgradeRequiredError } from '../errors.js'
import type { Gantry } from '../gantry.js'
import type { z } from 'zod'

export const streamPath = '/api/v1/stream'

/** What was found, past and live. */
export const resultRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/detections',
    auth: 'token',
    tag: 'results',
    summary: 'Recent results, newest first',
    querySchema: pastQuerySchema,
    responses: { 200: { description: 'One page.', schema: detectionsPageSchema } },
    problems: [400, 404, 503],
    handle: async ({ query, context }) => {
      const page = await context.gantry.recent(recentQuery(query))
      if (page.items.length === 0) await isThereAny(query, context.gantry)
      return { body: page }
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/events',
    auth: 'token',
    tag: 'results',
    summary: 'Safety events, newest first',
    querySchema: pastQuerySchema,
    responses: { 200: { description: 'One page.', schema: eventsPageSchema } },
    problems: [400, 404],
    handle: async ({ query, context }) => {
      if (query.camera !== undefined) await context.gantry.camera(query.camera)
      return { body: { items: [] } }
    },
  }),
  route({
    method: 'GET',
    path: streamPath,
    auth: 'token',
    tag: 'results',
    summary: 'Live results: a WebSocket with sub-protocol gantry.v1, described in /asyncapi.json',
    responses: { 101: { description: 'Switched to the WebSocket.' } },
    problems: [400, 426],
    handle: () => {
      throw new UpgradeRequiredError()
    },
  }),
]

/**
 * Nothing was found. That is no answer for a name that nobody has: whoever mistyped it would wait for ever. Results of a camera or label
 * that was there before are given as long as they are kept.
 *
 * @throws CameraNotFoundError, BadRequestError naming the labels there are
 */
async function isThereAny(
  { camera, label }: z.output<typeof pastQuerySchema>,
  gantry: Gantry,
): Promise<void> {
  if (camera !== undefined) await gantry.camera(camera)
  const labels = new Set(gantry.readiness().engines.flatMap(({ detector }) => detector?.labels ?? []))
  // Of a model that is not loaded yet nothing is known.
  if (label === undefined || labels.size === 0 || labels.has(label)) return
  throw new BadRequestError(`nothing is called "${label}" by the model of the cameras`, [
    { path: 'label', message: suggestion(label, [...labels]) ?? 'the model has no such label' },
  ])
}

function recentQuery(query: z.output<typeof pastQuerySchema>): RecentQuery {
  return {
    limit: query.limit,
    ...(query.camera === undefined ? {} : { cameraId: query.camera }),
    ...(query.label === undefined ? {} : { label: query.label }),
    ...(query.from === undefined ? {} : { fromMs: Date.parse(query.from) }),
    ...(query.to === undefined ? {} : { toMs: Date.parse(query.to) }),
    ...(query.cursor === undefined ? {} : { cursor: query.cursor }),
  }
}
