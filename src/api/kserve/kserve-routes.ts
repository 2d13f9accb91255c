import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { LoadRequest, ModelServer } from '../../serving/model-server.js'
import { ServingError } from '../../tensors/serving-error.js'
import { mostHere } from '../codec/here-or-elsewhere.js'
import { readBody } from './body.js'
import { configJson } from './config-json.js'
import { healthPaths } from './health-paths.js'
import { answerInfer, type InferRouteOptions } from './infer-route.js'
import {
  addRoute,
  type AddRoute,
  answered,
  emptyJson,
  type RouteCall,
  type RouteHandler,
} from './kserve-route.js'
import { loadRequest, readyOnly, unloadDependents } from './repository-body.js'
import { checkTraced, logChanges, traceChanges, traceJson } from './settings-body.js'
import { sharedMemoryRoutes } from './shared-memory-routes.js'
import { statisticsJson } from './statistics-json.js'

export type KserveOptions = InferRouteOptions

const modelPath = '/v2/models/:model'
const versionPath = `${modelPath}/versions/:version(^[0-9]+$)`

/**
 * Every route of KServe v2 with Triton's extensions, over a model server. Where shared memory is off its routes say so.
 * Other methods are 405. Errors are left to the error handler of `createKserveApp`.
 */
export function kserveRoutes(app: FastifyInstance, server: ModelServer, options: KserveOptions): void {
  const add: AddRoute = (path, handlers, auth = 'token') => addRoute(app, path, handlers, auth, options)
  const addVersioned = (rest: string, handlers: Parameters<typeof add>[1]): void => {
    add(modelPath + rest, handlers)
    add(versionPath + rest, handlers)
  }
  const addAbout = (rest: string, get: RouteHandler): void =>
    addVersioned(rest, { GET: onceAsked(server, get) })
  healthRoutes(add, addAbout, server)
  modelRoutes(add, addAbout, server)
  addVersioned('/infer', {
    POST: async ({ request, reply, target }) => {
      await answerInfer(server, request, reply, target, options)
      return answered
    },
  })
  repositoryRoutes(add, server, options)
  settingsRoutes(add, server)
  sharedMemoryRoutes(add, server)
}

/** A question about a model, by its name and also with a version. */
type AddAbout = (rest: string, get: RouteHandler) => void

/** Tells of a model once it is loaded, where that happens when somebody asks for it; of all where none is named. */
function onceAsked(server: ModelServer, handler: RouteHandler): RouteHandler {
  return async (call) => {
    await server.ask(call.target.model)
    return handler(call)
  }
}

function healthRoutes(add: AddRoute, addAbout: AddAbout, server: ModelServer): void {
  const addHealth = (path: string, tell: RouteHandler): void => add(path, { GET: tell, HEAD: tell }, 'health')
  const [live, ready] = healthPaths
  addHealth(live, ({ reply }) => empty(reply, server.live()))
  addHealth(
    ready,
    onceAsked(server, ({ reply }) => empty(reply, server.ready())),
  )
  addAbout('/ready', ({ reply, target }) => {
    if (!server.modelReady(target.model, target.version))
      throw new ServingError('INVALID_ARG', 'Model version not ready')
    return empty(reply, true)
  })
}

function empty(reply: FastifyReply, good: boolean): typeof answered {
  void reply.code(good ? 200 : 400).send()
  return answered
}

function modelRoutes(add: AddRoute, addAbout: AddAbout, server: ModelServer): void {
  add('/v2', {
    GET: () => ({ name: server.name, version: server.version, extensions: server.extensions }),
  })
  addAbout('', ({ target }) => {
    const { name, versions, platform, inputs, outputs } = server.metadata(target.model, target.version)
    return { name, versions, platform, inputs: inputs.map(tensorJson), outputs: outputs.map(tensorJson) }
  })
  addAbout('/config', ({ target }) => configJson(server.config(target.model, target.version)))
  addAbout('/stats', ({ target }) => statisticsJson(server.statistics(target.model, target.version)))
  add('/v2/models/stats', { GET: () => statisticsJson(server.statistics('', '')) })
}

function tensorJson({
  name,
  datatype,
  shape,
}: Readonly<{ name: string; datatype: string; shape: readonly number[] }>): unknown {
  return { name, datatype, shape }
}

function repositoryRoutes(add: AddRoute, server: ModelServer, options: KserveOptions): void {
  const index: RouteHandler = async ({ body }) =>
    server.index(readyOnly(await body())).map(({ name, version, state, reason }) => ({
      name,
      ...(version === '' ? {} : { version }),
      ...(state === '' ? {} : { state }),
      ...(reason === '' ? {} : { reason }),
    }))
  add('/v2/repository/index', { POST: index })
  add('/v2/repository/:repository/index', { POST: index })
  add('/v2/repository/models/:model/load', {
    POST: async ({ request, reply, target }) => {
      await server.load(target.model, await readLoad(request, reply, options))
      return emptyJson(reply)
    },
  })
  add('/v2/repository/models/:model/unload', {
    POST: async ({ reply, target, body }) => {
      await server.unload(target.model, unloadDependents(await body()))
      return emptyJson(reply)
    },
  })
  const ofRepository: RouteHandler = () => {
    throw new ServingError('UNSUPPORTED', "'repository_name' specification is not supported")
  }
  add('/v2/repository/:repository/models/:model/load', { POST: ofRepository })
  add('/v2/repository/:repository/models/:model/unload', { POST: ofRepository })
}

/** It carries files. @throws ServingError, BodyTooLargeError */
async function readLoad(
  request: FastifyRequest,
  reply: FastifyReply,
  { maxBodyBytes, pool }: KserveOptions,
): Promise<LoadRequest> {
  const body = await readBody(request.raw, maxBodyBytes)
  if (body.byteLength <= mostHere.bytes) return loadRequest(body)
  const client = new AbortController()
  const onClose = (): void => client.abort()
  reply.raw.once('close', onClose)
  try {
    return await pool.run('loadBody', body, (moved) => ({ body: moved }), client.signal)
  } finally {
    reply.raw.off('close', onClose)
  }
}

function settingsRoutes(add: AddRoute, server: ModelServer): void {
  // The settings of the server are no question about its models.
  const askFor = (model: string) => (model === '' ? undefined : server.ask(model))
  const trace = (model: string): unknown => {
    checkTraced(server, model)
    return traceJson(server.settings.trace(model))
  }
  const handlers = {
    GET: async ({ target }: RouteCall) => {
      await askFor(target.model)
      return trace(target.model)
    },
    POST: async ({ target, body }: RouteCall) => {
      const changes = traceChanges(await body())
      await askFor(target.model)
      trace(target.model)
      server.settings.setTrace(target.model, changes)
      return trace(target.model)
    },
  }
  add('/v2/trace/setting', handlers)
  add(`${modelPath}/trace/setting`, handlers)
  add('/v2/logging', {
    GET: () => server.settings.log(),
    POST: async ({ body }) => {
      server.settings.setLog(logChanges(await body()))
      return server.settings.log()
    },
  })
}
