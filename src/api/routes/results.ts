import type { RecentQuery } from '../../cache/result-cache.js'
import { detectionsPageSchema, eventsPageSchema, pastQuerySchema } from '../api-schemas.js'
import { route } from '../route.js'
import { UpgradeRequiredError } from '../errors.js'
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
    problems: [400, 503],
    handle: async ({ query, context }) => ({ body: await context.gantry.recent(recentQuery(query)) }),
  }),
  route({
    method: 'GET',
    path: '/api/v1/events',
    auth: 'token',
    tag: 'results',
    summary: 'Safety events, newest first',
    querySchema: pastQuerySchema,
    responses: { 200: { description: 'One page.', schema: eventsPageSchema } },
    problems: [400],
    handle: () => ({ body: { items: [] } }),
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
