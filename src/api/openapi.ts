import { z } from 'zod'
import { cameraPatchSchema, newCameraSchema } from '../config/camera.js'
import { ensembleChangeSchema } from '../config/ensemble-change.js'
import { detectionsMessageSchema } from '../messages/detections-message.js'
import {
  acceptedFrameSchema,
  admittedCameraSchema,
  cameraListSchema,
  cameraViewSchema,
  detectionsPageSchema,
  eventsPageSchema,
  headroomSchema,
  healthSchema,
  readinessAnswerSchema,
  readinessSchema,
  readinessStatusSchema,
  statusSchema,
} from './api-schemas.js'
import { ensembleSchema } from './ensemble-schema.js'
import { problemMediaType, problemSchema } from './problem.js'
import type { AuthRule, Route } from './route.js'
import { apiRoutes } from './routes/index.js'

/** Version of the API, raised with every change a client can see. */
const apiVersion = '1.0.0'

const requests = new Map<z.ZodType, string>([
  [newCameraSchema, 'NewCamera'],
  [cameraPatchSchema, 'CameraPatch'],
  [ensembleChangeSchema, 'EnsembleChange'],
])

const answers = new Map<z.ZodType, string>([
  [cameraViewSchema, 'Camera'],
  [admittedCameraSchema, 'AdmittedCamera'],
  [cameraListSchema, 'CameraList'],
  [detectionsMessageSchema, 'Detections'],
  [detectionsPageSchema, 'DetectionsPage'],
  [eventsPageSchema, 'EventsPage'],
  [acceptedFrameSchema, 'AcceptedFrame'],
  [readinessSchema, 'Readiness'],
  [readinessStatusSchema, 'ReadinessStatus'],
  [readinessAnswerSchema, 'ReadinessAnswer'],
  [statusSchema, 'Status'],
  [headroomSchema, 'Headroom'],
  [ensembleSchema, 'Ensemble'],
  [healthSchema, 'Health'],
  [problemSchema, 'Problem'],
])

type Json = Record<string, unknown>

/** OpenAPI 3.1 document of `/`, made of the very schemas the server checks with. Published as `schemas/openapi.json`. */
export function openApiDocument(): Json {
  const paths: Record<string, Json> = {}
  for (const route of apiRoutes) {
    const item = (paths[route.path] ??= {})
    item[route.method.toLowerCase()] = operation(route)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Gantry',
      version: apiVersion,
      description:
        'Cameras, detections and the state of the service. Times are RFC 3339 in UTC, boxes are in source-frame pixels, ' +
        'errors are RFC 9457 problems with a code of their own.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: [
      { name: 'cameras', description: 'Cameras, changed live.' },
      { name: 'results', description: 'What was found.' },
      { name: 'operations', description: 'Health, readiness, metrics.' },
      { name: 'documents', description: 'Descriptions of API and messages.' },
    ],
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'server.token of the pipeline file, when one is set.',
        },
      },
      schemas: { ...components(requests, 'input'), ...components(answers, 'output') },
    },
  }
}

function operation(route: Route): Json {
  const parameters = [...parametersOf(route.pathSchema, 'path'), ...parametersOf(route.querySchema, 'query')]
  return {
    operationId: operationId(route),
    tags: [route.tag],
    summary: route.summary,
    ...security[route.auth],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...requestBody(route),
    responses: { ...answersOf(route), ...problemsOf(route) },
  }
}

/** Beside what the document says of all: no token, one that may be left out, and nothing else. */
const security: Readonly<Record<AuthRule, Json>> = {
  open: { security: [] },
  health: { security: [{}, { bearer: [] }] },
  token: {},
}

/** Statuses of the guard. */
const refusals: Readonly<Record<AuthRule, readonly number[]>> = { open: [403], health: [], token: [401, 403] }

function operationId({ method, path }: Route): string {
  const words = path
    .replace('/api/v1', '')
    .replace(/\.(\w)/g, '-$1')
    .split(/[^A-Za-z0-9]+/)
  const name = words.filter((word) => word !== '').map((word) => word[0]?.toUpperCase() + word.slice(1))
  return method.toLowerCase() + name.join('')
}

function requestBody(route: Route): Json {
  const content = route.pictureTypes
    ? Object.fromEntries(route.pictureTypes.map((type) => [type, {}]))
    : route.bodySchema && { 'application/json': { schema: reference(route.bodySchema, requests) } }
  return content === undefined ? {} : { requestBody: { required: true, content } }
}

function answersOf(route: Route): Json {
  return Object.fromEntries(
    Object.entries(route.responses).map(([status, { description, schema, type }]) => {
      const content = schema
        ? { [type ?? 'application/json']: { schema: reference(schema, answers) } }
        : type && {
            [type]: type.startsWith('image/')
              ? {}
              : { schema: { type: type.includes('json') ? 'object' : 'string' } },
          }
      return [status, { description, ...(content ? { content } : {}) }]
    }),
  )
}

function problemsOf(route: Route): Json {
  const limited = route.path.startsWith('/api/') ? [429] : []
  const common = [...refusals[route.auth], ...limited]
  const body = route.bodySchema !== undefined || route.pictureTypes !== undefined ? [413] : []
  const path = route.pathSchema === undefined ? [] : [400]
  const statuses = [...new Set([...route.problems, ...path, ...common, ...body])].filter(
    (status) => !(status in route.responses),
  )
  return {
    ...Object.fromEntries(
      statuses.map((status) => [status, problemAnswer(problemTexts[status] ?? 'Refused.')]),
    ),
    default: problemAnswer('Any other error.'),
  }
}

const problemTexts: Readonly<Record<number, string>> = {
  400: 'The request is wrong; `problems` names every field.',
  401: 'The token is missing or wrong.',
  403: 'Host or Origin is not one of ours.',
  404: 'There is no such thing.',
  409: 'In conflict with what is there.',
  413: 'The body is too large.',
  415: 'The content type is not taken here.',
  426: 'Only a WebSocket is served here.',
  429: 'This address asks too often; `Retry-After` tells when to come back.',
  503: 'What it needs is away, full or has too much to do: the engine, the cache, the disk; `Retry-After` tells when to come back.',
}

function problemAnswer(description: string): Json {
  return {
    description,
    content: { [problemMediaType.split(';')[0] ?? '']: { schema: reference(problemSchema, answers) } },
  }
}

function parametersOf(schema: z.ZodType | undefined, place: 'path' | 'query'): Json[] {
  if (schema === undefined) return []
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: 'input' })
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...rest } = property as Json
    return {
      name,
      in: place,
      required: required.includes(name),
      ...(description === undefined ? {} : { description }),
      schema: rest,
    }
  })
}

function reference(schema: z.ZodType, names: ReadonlyMap<z.ZodType, string>): Json {
  const name = names.get(schema)
  if (name === undefined) throw new Error('a schema of a route has no name in the OpenAPI document')
  return { $ref: `#/components/schemas/${name}` }
}

function components(names: ReadonlyMap<z.ZodType, string>, io: 'input' | 'output'): Json {
  const registry = z.registry<{ id: string }>()
  for (const [schema, id] of names) registry.add(schema, { id })
  const { schemas } = z.toJSONSchema(registry, { io, uri: (id) => `#/components/schemas/${id}` })
  return Object.fromEntries(
    Object.entries(schemas).map(([id, { $schema: _schema, $id: _id, ...schema }]) => [id, schema]),
  )
}
