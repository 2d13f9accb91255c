import type { ParameterValue } from '../../runtime/infer.js'
import type { LoadRequest, ModelServer, ModelServerSettings } from '../../serving/model-server.js'
import { ServingError } from '../../tensors/serving-error.js'
import { checkTraced } from '../kserve/settings-body.js'
import { statisticsJson } from '../kserve/statistics-json.js'
import type { TensorSpec } from '../../tensors/tensor.js'
import { versionOf } from './infer-request-message.js'
import { sharedMemoryMethods } from './shared-memory-methods.js'
import type { Message } from '../../kserve/grpc-schema.js'

/** Request in, answer out; both with the names of the schema. @throws ServingError */
export type UnaryMethod = (request: Message) => Message | Promise<Message>

/** Every RPC but the two that infer. */
export function unaryMethods(server: ModelServer): Readonly<Record<string, UnaryMethod>> {
  return {
    ServerLive: () => ({ live: server.live() }),
    ServerReady: async () => {
      await server.ask('')
      return { ready: server.ready() }
    },
    ServerMetadata: () => ({ name: server.name, version: server.version, extensions: server.extensions }),
    ...modelMethods(server),
    ...repositoryMethods(server),
    ...settingsMethods(server),
    ...sharedMemoryMethods(server),
  }
}

/** Each tells of a model once it is loaded, where that happens when somebody asks for it. */
function modelMethods(server: ModelServer): Readonly<Record<string, UnaryMethod>> {
  const about =
    (tell: (name: string, version: string) => Message): UnaryMethod =>
    async (request) => {
      const name = nameOf(request)
      // Without a name, statistics are those of all that is loaded.
      if (name !== '') await server.ask(name)
      return tell(name, requestVersion(request))
    }
  return {
    ModelReady: about((name, version) => ({ ready: isReady(server, name, version) })),
    ModelMetadata: about((name, version) => {
      const { inputs, outputs, ...model } = server.metadata(name, version)
      return { ...model, inputs: inputs.map(tensorMessage), outputs: outputs.map(tensorMessage) }
    }),
    ModelConfig: about((name, version) => ({ config: server.config(name, version) })),
    ModelStatistics: about((name, version) => statisticsJson(server.statistics(name, version))),
  }
}

/** A model that nobody knows is not ready: clients that wait for it ask again. @throws ServingError from a server that stops */
function isReady(server: ModelServer, name: string, version: string): boolean {
  try {
    return server.modelReady(name, version)
  } catch (error) {
    if (error instanceof ServingError && error.status === 'INVALID_ARG') return false
    throw error
  }
}

function repositoryMethods(server: ModelServer): Readonly<Record<string, UnaryMethod>> {
  return {
    RepositoryIndex: (request) => ({ models: server.index(request['ready'] === true) }),
    RepositoryModelLoad: async (request) => {
      ofAnyRepository(request)
      await server.load(textOf(request, 'model_name'), loadRequest(entriesOf(request, 'parameters')))
      return {}
    },
    RepositoryModelUnload: async (request) => {
      ofAnyRepository(request)
      await server.unload(textOf(request, 'model_name'), unloadDependents(entriesOf(request, 'parameters')))
      return {}
    },
  }
}

function settingsMethods(server: ModelServer): Readonly<Record<string, UnaryMethod>> {
  return {
    TraceSetting: async (request) => {
      const model = textOf(request, 'model_name')
      if (model !== '') await server.ask(model)
      checkTraced(server, model)
      return traceSetting(server.settings, model, entriesOf(request, 'settings'))
    },
    LogSettings: (request) => logSettings(server.settings, entriesOf(request, 'settings')),
  }
}

function tensorMessage({ name, datatype, shape }: TensorSpec): Message {
  return { name, datatype, shape }
}

function ofAnyRepository(request: Message): void {
  if (textOf(request, 'repository_name') !== '')
    throw new ServingError('UNSUPPORTED', "'repository_name' specification is not supported")
}

type Entries = readonly (readonly [string, Message])[]

function loadRequest(parameters: Entries): LoadRequest {
  let config: string | undefined
  const files = new Map<string, Uint8Array>()
  for (const [name, value] of parameters) {
    if (name === 'config') {
      if (value['parameter_choice'] !== 'string_param') throw wrongLoadParameter(name, 'string_param')
      config = textOf(value, 'string_param')
    } else if (name.startsWith('file:')) {
      const content = value['bytes_param']
      if (!(content instanceof Uint8Array)) throw wrongLoadParameter(name, 'bytes_param')
      files.set(name.slice('file:'.length), content)
    } else throw new ServingError('INVALID_ARG', `unrecognized load parameter '${name}'.`)
  }
  return { config, files }
}

function wrongLoadParameter(name: string, expected: string): ServingError {
  return new ServingError(
    'INVALID_ARG',
    `invalid value type for load parameter '${name}', expected ${expected}.`,
  )
}

function unloadDependents(parameters: Entries): boolean {
  const value = parameters.find(([name]) => name === 'unload_dependents')?.[1]
  if (value === undefined) return false
  if (value['parameter_choice'] === 'bool_param') return value['bool_param'] === true
  throw new ServingError(
    'INVALID_ARG',
    "invalid value type for 'unload_dependents' parameter, expected bool_param.",
  )
}

/** A setting without values is set back. */
function traceSetting(settings: ModelServerSettings, model: string, given: Entries): Message {
  const changes = given.map(([name, { value }]) => {
    const values = Array.isArray(value) ? value.map(String) : []
    return [name, values.length === 0 ? undefined : values] as const
  })
  if (changes.length > 0) settings.setTrace(model, Object.fromEntries(changes))
  const now = Object.entries(settings.trace(model)).map(([name, value]) => [name, { value }] as const)
  return { settings: Object.fromEntries(now) }
}

function logSettings(settings: ModelServerSettings, given: Entries): Message {
  const changes = given.map(([name, value]) => {
    const choice = value['parameter_choice']
    return [name, (typeof choice === 'string' ? value[choice] : '') as ParameterValue] as const
  })
  if (changes.length > 0) settings.setLog(Object.fromEntries(changes))
  const now = Object.entries(settings.log()).map(([name, value]) => [name, settingMessage(value)] as const)
  return { settings: Object.fromEntries(now) }
}

function settingMessage(value: ParameterValue): Message {
  if (typeof value === 'boolean') return { bool_param: value }
  return typeof value === 'string' ? { string_param: value } : { uint32_param: Number(value) }
}

function nameOf(request: Message): string {
  return textOf(request, 'name')
}

function requestVersion(request: Message): string {
  return versionOf(textOf(request, 'version'))
}

function textOf(message: Message, name: string): string {
  const value = message[name]
  return typeof value === 'string' ? value : ''
}

function entriesOf(message: Message, name: string): Entries {
  return Object.entries((message[name] ?? {}) as Readonly<Record<string, Message>>)
}
