import { Readable } from 'node:stream'
import { wallMs } from '../../lifecycle/clock.js'
import type { HeadroomView } from '../gantry.js'
import { headroomQuerySchema, headroomSchema } from '../headroom-schemas.js'
import {
  healthSchema,
  readinessAnswerSchema,
  statusSchema,
  type ReadinessView,
} from '../readiness-schemas.js'
import { route, type RouteContext } from '../route.js'

/** Prometheus text format 0.0.4, what prom-client writes. */
const metricsType = 'text/plain; version=0.0.4; charset=utf-8'

export const healthRoute = route({
  method: 'GET',
  path: '/healthz',
  auth: 'health',
  tag: 'operations',
  summary: 'Whether the process answers; says nothing about engines or cameras',
  responses: { 200: { description: 'It does.', schema: healthSchema } },
  problems: [],
  handle: () => ({ body: { status: 'ok' } }),
})

export const metricsRoute = route({
  method: 'GET',
  path: '/metrics',
  auth: 'token',
  tag: 'operations',
  summary: 'Metrics in the Prometheus text format',
  responses: { 200: { description: 'The metrics.', type: metricsType } },
  problems: [],
  handle: ({ context }) => ({ type: metricsType, body: Readable.from(context.gantry.metrics()) }),
})

export const operationRoutes = [
  healthRoute,
  route({
    method: 'GET',
    path: '/readyz',
    auth: 'health',
    tag: 'operations',
    summary: 'Whether the service can analyse frames; with the token, also why not',
    responses: {
      200: { description: 'Ready.', schema: readinessAnswerSchema },
      503: {
        description: 'Not ready: starting, stopping, or every engine is down.',
        schema: readinessAnswerSchema,
      },
    },
    problems: [],
    handle: ({ context, trusted }) => {
      const view = readinessView(context)
      return { status: view.ready ? 200 : 503, body: trusted ? view : { ready: view.ready } }
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/status',
    auth: 'token',
    tag: 'operations',
    summary: 'Readiness with what runs: engines, model, sinks, cache, stream clients',
    responses: { 200: { description: 'The state of the service.', schema: statusSchema } },
    problems: [],
    handle: ({ context }) => ({
      body: {
        name: context.gantry.name,
        version: context.gantry.version,
        nowMs: wallMs(),
        gpus: [...context.gantry.gpus()],
        kafka: context.gantry.sinkPlaces.kafka,
        webhooks: [...context.gantry.sinkPlaces.webhooks],
        mqtt: [...context.gantry.sinkPlaces.mqtt],
        ...readinessView(context),
      },
    }),
  }),
  route({
    method: 'GET',
    path: '/api/v1/headroom',
    auth: 'token',
    tag: 'operations',
    summary: 'How many more cameras there is room for, and by what arithmetic',
    querySchema: headroomQuerySchema,
    responses: { 200: { description: 'The room that is left.', schema: headroomSchema } },
    problems: [400, 404],
    handle: async ({ query, context }) => ({ body: headroomBody(await context.gantry.headroom(query)) }),
  }),
  metricsRoute,
]

function headroomBody({ cluster, ...view }: HeadroomView) {
  return { ...view, ...(cluster && { cluster: { ...cluster, nodes: [...cluster.nodes] } }) }
}

function readinessView({ gantry, draining }: RouteContext): ReadinessView {
  const { ready, reasons, engines, sinks, cache, store, stream, modelServer, tlsDoor, cameras, cluster } =
    gantry.readiness()
  const stopping = draining()
  return {
    ready: ready && !stopping,
    reasons: stopping && ready ? ['the service is stopping', ...reasons] : [...reasons],
    engines: engines.map(({ detector, ...engine }) => ({
      ...engine,
      detector: detector === null ? null : detectorView(detector),
    })),
    sinks: [...sinks],
    cache,
    store,
    stream,
    modelServer:
      modelServer === null ? null : { ...modelServer, providerFailures: [...modelServer.providerFailures] },
    tlsDoor,
    cameras,
    cluster,
  }
}

type Detector = NonNullable<ReturnType<RouteContext['gantry']['readiness']>['engines'][number]['detector']>

function detectorView(detector: Detector): NonNullable<ReadinessView['engines'][number]['detector']> {
  const {
    format,
    exportedInput: _,
    labels,
    providerNotes,
    providerFailures,
    sizes,
    float16,
    ...rest
  } = detector
  return {
    ...rest,
    labels: [...labels],
    providerNotes: [...providerNotes],
    providerFailures: [...providerFailures],
    input: format.input,
    ...(float16 && { float16: float16View(float16) }),
    ...(sizes && { batchSizes: [...sizes.warm], batchSizesToCome: [...sizes.toCome] }),
  }
}

function float16View({ model, isTaken, comparison }: NonNullable<Detector['float16']>) {
  const { size, ms } = comparison
  const measured =
    'reason' in comparison
      ? { float16Ms: null, reason: comparison.reason }
      : { float16Ms: comparison.float16Ms, reason: '' }
  return { model, isTaken, size, ms, ...measured }
}
