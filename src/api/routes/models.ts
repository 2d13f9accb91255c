import { modelListSchema } from '../models-schema.js'
import { route } from '../route.js'

/** What the page of the models shows, in one answer. */
export const modelsRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/models',
    auth: 'token',
    tag: 'operations',
    summary: 'Models with versions, state, queue, batches, latency and places, of API clients and of cameras',
    responses: { 200: { description: 'The models.', schema: modelListSchema } },
    problems: [],
    handle: async ({ context }) => ({
      body: await context.gantry.models(),
    }),
  }),
]
