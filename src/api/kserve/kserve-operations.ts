import type { z } from 'zod'
import type { AuthRule } from '../route.js'
import { healthPaths } from './health-paths.js'
import {
  indexRequestSchema,
  indexSchema,
  inferRequestSchema,
  inferResponseSchema,
  loadRequestSchema,
  logSettingsSchema,
  modelConfigurationSchema,
  modelMetadataSchema,
  nothingSchema,
  serverMetadataSchema,
  sharedMemoryRegisterSchema,
  sharedMemoryStatusSchema,
  statisticsSchema,
  traceSettingsSchema,
  unloadRequestSchema,
} from './kserve-schemas.js'

/** One operation of `/v2`, for the OpenAPI document. */
export type KserveOperation = Readonly<{
  method: 'GET' | 'HEAD' | 'POST'
  /** With `{name}` for parameters. */
  path: string
  auth: AuthRule
  summary: string
  /** JSON body; all but that of an inference may be left out. */
  body?: z.ZodType
  /** Absent: the answer is empty. */
  answer?: z.ZodType
  /** Beside the JSON, a body of JSON and binary tensors. */
  isBinaryToo?: boolean
  /** Statuses of errors. */
  errors: readonly number[]
}>

type About = Omit<KserveOperation, 'path' | 'auth'>

const models = '/v2/models/{model}'

/** By the name of a model, and of one version. */
function versioned(rest: string, about: About): KserveOperation[] {
  const { summary } = about
  return [
    { ...about, path: models + rest, auth: 'token' },
    {
      ...about,
      path: `${models}/versions/{version}${rest}`,
      auth: 'token',
      summary: `${summary}, of one version`,
    },
  ]
}

function healthOf(path: string, summary: string): KserveOperation[] {
  return (['GET', 'HEAD'] as const).map((method) => ({
    method,
    path,
    auth: 'health',
    summary,
    errors: [400],
  }))
}

function settingsAt(path: string, what: string, schema: z.ZodType): KserveOperation[] {
  const errors = [400, 404, 503]
  return [
    { method: 'GET', path, auth: 'token', summary: `Settings of ${what}`, answer: schema, errors },
    {
      method: 'POST',
      path,
      auth: 'token',
      summary: `Change settings of ${what}; answers with all of them`,
      body: schema,
      answer: schema,
      errors,
    },
  ]
}

function sharedMemoryAt(kind: 'system' | 'cuda'): KserveOperation[] {
  const cuda = kind === 'cuda'
  const what = cuda ? 'CUDA shared memory, which is not supported' : 'shared memory of this machine'
  const status = cuda ? nothingSchema : sharedMemoryStatusSchema
  const errors = [400, 404, 501]
  return ['', '/region/{region}'].flatMap((region): KserveOperation[] => {
    const path = `/v2/${kind}sharedmemory${region}`
    const one = region === '' ? 'All regions' : 'One region'
    const common = { auth: 'token', errors } as const
    return [
      { ...common, method: 'GET', path: `${path}/status`, summary: `${one} of ${what}`, answer: status },
      {
        ...common,
        method: 'POST',
        path: `${path}/register`,
        summary: `Register a region of ${what}`,
        body: sharedMemoryRegisterSchema,
      },
      { ...common, method: 'POST', path: `${path}/unregister`, summary: `${one} of ${what}: unregister` },
    ]
  })
}

function repositoryAt(repository: string): KserveOperation[] {
  const path = `/v2/repository${repository}`
  const common = { method: 'POST', auth: 'token' } as const
  const named = repository === '' ? '' : ', of a named repository: not supported'
  const errors = repository === '' ? [400, 404, 503] : [400, 404, 501, 503]
  return [
    {
      ...common,
      path: `${path}/index`,
      summary: 'Models of the repositories and their state',
      body: indexRequestSchema,
      answer: indexSchema,
      errors: [400],
    },
    {
      ...common,
      path: `${path}/models/{model}/load`,
      summary: `Load a model, or load it anew${named}`,
      body: loadRequestSchema,
      errors: [...errors, 413],
    },
    {
      ...common,
      path: `${path}/models/{model}/unload`,
      summary: `Unload a model${named}`,
      body: unloadRequestSchema,
      errors,
    },
  ]
}

const [live, ready] = healthPaths
const ofModel = [400, 404, 503]

/** Every operation of `/v2`, held equal to the routes by a test. */
export const kserveOperations: readonly KserveOperation[] = [
  ...healthOf(live, 'Whether the model server lives'),
  ...healthOf(ready, 'Whether the model server is ready for inferences'),
  {
    method: 'GET',
    path: '/v2',
    auth: 'token',
    summary: 'The model server and its extensions',
    answer: serverMetadataSchema,
    errors: [503],
  },
  ...versioned('', {
    method: 'GET',
    summary: 'Inputs and outputs of a model',
    answer: modelMetadataSchema,
    errors: ofModel,
  }),
  ...versioned('/ready', { method: 'GET', summary: 'Whether a model is ready', errors: ofModel }),
  ...versioned('/config', {
    method: 'GET',
    summary: 'Configuration of a model',
    answer: modelConfigurationSchema,
    errors: ofModel,
  }),
  ...versioned('/stats', {
    method: 'GET',
    summary: 'Statistics of a model',
    answer: statisticsSchema,
    errors: ofModel,
  }),
  ...versioned('/infer', {
    method: 'POST',
    summary: 'Ask a model',
    body: inferRequestSchema,
    answer: inferResponseSchema,
    isBinaryToo: true,
    errors: [400, 404, 413, 500, 501, 503],
  }),
  {
    method: 'GET',
    path: '/v2/models/stats',
    auth: 'token',
    summary: 'Statistics of all models',
    answer: statisticsSchema,
    errors: [503],
  },
  ...repositoryAt(''),
  ...repositoryAt('/{repository}'),
  ...settingsAt('/v2/trace/setting', 'traces', traceSettingsSchema),
  ...settingsAt(`${models}/trace/setting`, 'traces of one model', traceSettingsSchema),
  ...settingsAt('/v2/logging', 'the log', logSettingsSchema),
  ...sharedMemoryAt('system'),
  ...sharedMemoryAt('cuda'),
]
