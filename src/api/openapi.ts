import { z } from 'zod'
import { kserveOperations, type KserveOperation } from './kserve/kserve-operations.js'
import { inferRequestSchema, kserveErrorSchema } from './kserve/kserve-schemas.js'
import { problemMediaType, problemSchema } from './problem.js'
import type { AuthRule, Route } from './route.js'
import { apiRoutes } from './routes/index.js'
import { answerBodies, requestBodies } from './openapi-bodies.js'
import { parameterExamples } from './openapi-examples.js'

/** Version of the API, raised with every change a client can see. */
const apiVersion = '1.1.0'

const bodies = new Map([...requestBodies, ...answerBodies])

type Json = Record<string, unknown>

/** OpenAPI 3.1 document of `/`, made of the very schemas the server checks with. Published as `schemas/openapi.json`. */
export function openApiDocument(): Json {
  const paths: Record<string, Json> = {}
  for (const route of apiRoutes) {
    const item = (paths[route.path] ??= {})
    item[route.method.toLowerCase()] = operation(route)
  }
  for (const asked of kserveOperations) {
    const item = (paths[asked.path] ??= {})
    item[asked.method.toLowerCase()] = kserveOperation(asked)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Gantry',
      version: apiVersion,
      description:
        'Cameras, detections and the state of the service. Times are RFC 3339 in UTC, boxes are in source-frame pixels, ' +
        'errors are RFC 9457 problems with a code of their own. Paths under `/v2` are the KServe protocol, version 2, with ' +
        "Triton's extensions: they are asked with its clients, and their errors are those of Triton.",
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: [
      { name: 'cameras', description: 'Cameras, changed live.' },
      { name: 'results', description: 'What was found.' },
      { name: 'operations', description: 'Health, readiness, metrics.' },
      { name: 'documents', description: 'Descriptions of API and messages.' },
      { name: 'models', description: 'The model server: KServe v2 with extensions of Triton.' },
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
      schemas: { ...components(requestBodies, 'input'), ...components(answerBodies, 'output') },
      responses: errorAnswers(),
      examples: Object.fromEntries(
        [...bodies.values()].flatMap(({ name, example }) =>
          example === undefined ? [] : [[name, { value: example }]],
        ),
      ),
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
    : route.bodySchema && { 'application/json': described(route.bodySchema) }
  return content === undefined ? {} : { requestBody: { required: true, content } }
}

function answersOf(route: Route): Json {
  return Object.fromEntries(
    Object.entries(route.responses).map(([status, { description, schema, type, headers }]) => {
      const content = schema
        ? { [type ?? 'application/json']: described(schema) }
        : type && {
            [type]: type.startsWith('image/')
              ? {}
              : { schema: { type: type.includes('json') ? 'object' : 'string' } },
          }
      const told = headers && Object.entries(headers).map(([name, says]) => [name, headerOf(says)] as const)
      return [
        status,
        {
          description,
          ...(told ? { headers: Object.fromEntries(told) } : {}),
          ...(content ? { content } : {}),
        },
      ]
    }),
  )
}

function headerOf(description: string): Json {
  return { description, schema: { type: 'string' } }
}

function problemsOf(route: Route): Json {
  const limited = route.path.startsWith('/api/') ? [429] : []
  const common = [...refusals[route.auth], ...limited]
  const body = route.bodySchema !== undefined || route.pictureTypes !== undefined ? [413] : []
  const path = route.pathSchema === undefined ? [] : [400]
  const statuses = [...new Set([...route.problems, ...path, ...common, ...body])].filter(
    (status) => !(status in route.responses),
  )
  return errorsOf('Problem', statuses)
}

/** By reference: they are the same for every operation. */
function errorsOf(kind: 'Problem' | 'ModelServerError', statuses: readonly number[]): Json {
  return Object.fromEntries(
    [...statuses, 'default'].map((status) => [status, { $ref: `#/components/responses/${kind}-${status}` }]),
  )
}

function errorAnswers(): Json {
  const answers = (kind: string, texts: Readonly<Record<string, string>>, answer: (text: string) => Json) =>
    Object.entries({ ...texts, default: 'Any other error.' }).map(
      ([status, text]) => [`${kind}-${status}`, answer(text)] as const,
    )
  return Object.fromEntries([
    ...answers('Problem', problemTexts, problemAnswer),
    ...answers('ModelServerError', { ...problemTexts, ...modelServerTexts }, kserveError),
  ])
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

/** Where they are others than those of problems. */
const modelServerTexts: Readonly<Record<number, string>> = {
  400: 'The request is wrong, or there is no such model.',
  404: 'There is no such model, version or region.',
  500: 'The model failed.',
  501: 'That is not supported here.',
  503: 'The model is not ready, its queue is full, or the model server is away.',
}

function problemAnswer(description: string): Json {
  return {
    description,
    content: { [problemMediaType.split(';')[0] ?? '']: described(problemSchema) },
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
      ...parameterExample(name),
    }
  })
}

function kserveOperation(asked: KserveOperation): Json {
  const { path, auth, summary, body, answer, isBinaryToo = false, errors } = asked
  const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string', ...(name === 'version' && { pattern: '^[0-9]+$' }) },
    ...parameterExample(name),
  }))
  const binary = isBinaryToo ? { 'application/octet-stream': {} } : {}
  const header = { name: 'Inference-Header-Content-Length', in: 'header', schema: { type: 'integer' } }
  const lengthOfJson = isBinaryToo
    ? [{ ...header, description: 'Length of the JSON, where binary tensors follow it.', example: 126 }]
    : []
  const content = body && { 'application/json': described(body), ...binary }
  const isRequired = body === inferRequestSchema
  const common = [...refusals[auth], 429]
  const statuses = [...new Set([...errors, ...common])].sort((one, other) => one - other)
  return {
    operationId: kserveOperationId(asked),
    tags: ['models'],
    summary,
    ...security[auth],
    ...(parameters.length + lengthOfJson.length > 0 && { parameters: [...parameters, ...lengthOfJson] }),
    ...(content && { requestBody: { required: isRequired, content } }),
    responses: {
      200: {
        description: answer ? 'The answer.' : 'Done, or it is so.',
        ...(answer && { content: { 'application/json': described(answer), ...binary } }),
      },
      ...errorsOf('ModelServerError', statuses),
    },
  }
}

function kserveOperationId({ method, path }: KserveOperation): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '')
  return method.toLowerCase() + words.map((word) => word[0]?.toUpperCase() + word.slice(1)).join('')
}

function kserveError(description: string): Json {
  return { description, content: { 'application/json': described(kserveErrorSchema) } }
}

function parameterExample(name: string): Json {
  const example = parameterExamples[name]
  if (example === undefined) throw new Error(`parameter ${name} has no example in the OpenAPI document`)
  return { example }
}

/** A schema by its name, with an example. */
function described(schema: z.ZodType): Json {
  const { name, example } = bodies.get(schema) ?? {}
  if (name === undefined || example === undefined)
    throw new Error('a schema of a route has no name or no example in src/api/openapi-bodies.ts')
  return {
    schema: { $ref: `#/components/schemas/${name}` },
    examples: { one: { $ref: `#/components/examples/${name}` } },
  }
}

function components(named: ReadonlyMap<z.ZodType, Readonly<{ name: string }>>, io: 'input' | 'output'): Json {
  const registry = z.registry<{ id: string }>()
  for (const [schema, { name }] of named) registry.add(schema, { id: name })
  const { schemas } = z.toJSONSchema(registry, { io, uri: (id) => `#/components/schemas/${id}` })
  return Object.fromEntries(
    Object.entries(schemas).map(([id, { $schema: _schema, $id: _id, ...schema }]) => [id, schema]),
  )
}
