import {
  type ConnectionInjector,
  Server,
  ServerCredentials,
  type sendUnaryData,
  type ServerUnaryCall,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js'
import { ReflectionService } from '@grpc/reflection'
import type { Socket } from 'node:net'
import type protobuf from 'protobufjs'
import { type GrpcConnections, grpcConnectionsSchema } from '../../config/grpc-connections.js'
import type { Log } from '../../lifecycle/log.js'
import type { ModelServer } from '../../serving/model-server.js'
import { bytesUnderWay, CodecPool } from '../codec/codec-pool.js'
import { ListenError, PortInUseError } from '../errors.js'
import { TokenGuesses } from '../token-guesses.js'
import { CallsUnderWay } from './calls-under-way.js'
import { ClientPings } from './client-pings.js'
import { changesInterceptor } from './grpc-changes.js'
import { tokenInterceptor } from './grpc-access.js'
import { HealthMethods } from './grpc-health.js'
import { streamInfer, unaryInfer } from './grpc-infer.js'
import { unaryMethods, type UnaryMethod } from './grpc-methods.js'
import { grpcStatus } from './grpc-status.js'
import { decodeInferRequest } from './infer-request-message.js'
import { largeMessages } from './large-messages.js'
import { partsAsTheyAre, wholeMessage } from './message-in-parts.js'
import { ProtoError, ProtoReader } from './proto-reader.js'
import { reflectedPackage } from './reflection.js'
import { statusBehindMessage } from './unary-call.js'
import {
  decodeMessage,
  encodeMessage,
  healthService,
  inferenceService,
  type Message,
} from '../../kserve/grpc-schema.js'

export type GrpcOptions = Readonly<{
  host: string
  /** 0 takes any that is free; undefined listens on none, and serves the connections that it is given. */
  port: number | undefined
  /** Calls other than health need it, when it is set. */
  token?: string | undefined
  /** Absent: clients speak without TLS. */
  credentials?: ServerCredentials | undefined
  /** Of wrong tokens; without it they are not counted. */
  guesses?: TokenGuesses
  /** Largest message a client may send. */
  maxMessageBytes?: number
  /** Reads what would hold the loop; shared with others, else its own. */
  pool?: CodecPool
  /** How connections are kept and ended; absent: as the settings have it by default. */
  connections?: GrpcConnections
  log: Log
}>

export type GrpcServer = Readonly<{
  /** 0 where it listens on none. */
  port: number
  /** Serves a connection of which nothing was read. */
  adopt(socket: Socket): void
  /**
   * From here on calls are refused, but for those that ask for health, and streams end once what they sent is answered. Resolves when the
   * calls under way are answered, or after `withinMs`. Never rejects.
   */
  drain(withinMs: number): Promise<void>
  /** Takes no more calls, lets those under way finish for `drainMs`, then cuts. Idempotent, never rejects. */
  stop(drainMs: number): Promise<void>
}>

const defaultMessageBytes = 64 * 1024 * 1024

/** Largest message of a call that carries neither tensors nor files. */
const smallMessageBytes = 1024 * 1024
/** Parameters of a load: a configuration and files. */
const mostLoadFields = 4_096

function channelOptions(connections: GrpcConnections): Readonly<Record<string, number>> {
  const { maxConnectionAgeMs, maxConnectionAgeGraceMs } = connections
  return {
    ...(maxConnectionAgeMs === undefined ? {} : { 'grpc.max_connection_age_ms': maxConnectionAgeMs }),
    ...(maxConnectionAgeGraceMs === undefined
      ? {}
      : { 'grpc.max_connection_age_grace_ms': maxConnectionAgeGraceMs }),
    'grpc.keepalive_time_ms': connections.keepaliveTimeMs,
    'grpc.keepalive_timeout_ms': connections.keepaliveTimeoutMs,
    'grpc.max_concurrent_streams': 4096,
    // Its own statistics of calls, which nobody asks.
    'grpc.enable_channelz': 0,
  }
}

/**
 * Starts the gRPC API of KServe v2 with Triton's extensions, gRPC's health service and reflection.
 *
 * @throws PortInUseError, ListenError
 */
export async function startGrpc(server: ModelServer, options: GrpcOptions): Promise<GrpcServer> {
  const { token, guesses = new TokenGuesses(0), log, maxMessageBytes = defaultMessageBytes } = options
  const credentials = options.credentials ?? ServerCredentials.createInsecure()
  const calls = new CallsUnderWay()
  const rules = options.connections ?? grpcConnectionsSchema.parse({})
  const pings = new ClientPings(rules)
  const grpc = new Server({
    ...channelOptions(rules),
    'grpc.max_receive_message_length': maxMessageBytes,
    'grpc.max_send_message_length': -1,
    interceptors: [
      largeMessages(maxMessageBytes),
      partsAsTheyAre,
      ...(token === undefined ? [] : [tokenInterceptor(token, guesses)]),
      calls.interceptor,
      changesInterceptor(log),
      statusBehindMessage,
    ],
  })
  const health = new HealthMethods(server)
  const pool = options.pool ?? new CodecPool({ maxBytes: bytesUnderWay(maxMessageBytes) })
  grpc.addService(inferenceDefinition(), inferenceImplementation(server, pool, calls.draining, log))
  grpc.addService(definitionOf(healthService), { Check: health.Check, Watch: health.Watch })
  new ReflectionService(reflectedPackage()).addToServer(grpc)
  let given: ConnectionInjector | undefined
  const port = options.port === undefined ? 0 : await bind(grpc, options.host, options.port, credentials)
  pings.watch(grpc)
  let stopped: Promise<void> | undefined
  return {
    port,
    adopt: (socket) => {
      if (stopped !== undefined) return void socket.destroy()
      given ??= grpc.createConnectionInjector(credentials)
      pings.watch(grpc)
      given.injectConnection(socket)
    },
    drain: (withinMs) => {
      calls.refuse()
      health.changed()
      return calls.answered(withinMs)
    },
    stop: (drainMs) => {
      health.stop()
      return (stopped ??= stop(grpc, drainMs))
    },
  }
}

function bind(grpc: Server, host: string, port: number, credentials: ServerCredentials): Promise<number> {
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`
  return new Promise((resolve, reject) => {
    grpc.bindAsync(address, credentials, (error, bound) => {
      if (error === null) resolve(bound)
      else if (error.message.includes('EADDRINUSE')) reject(new PortInUseError(address, 'grpcPort', error))
      else reject(new ListenError(address, error))
    })
  })
}

function stop(grpc: Server, drainMs: number): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => {
      grpc.forceShutdown()
      resolve()
    }, drainMs)
    grpc.tryShutdown(() => {
      clearTimeout(cut)
      resolve()
    })
  })
}

/** The messages that carry tensors have readers and writers of their own. */
function inferenceDefinition(): ServiceDefinition {
  const definition = definitionOf(inferenceService)
  const infer = { requestDeserialize: decodeInferRequest, responseSerialize: wholeMessage }
  for (const name of ['ModelInfer', 'ModelStreamInfer'])
    definition[name] = { ...definition[name], ...infer } as ServiceDefinition[string]
  return definition
}

function definitionOf(service: protobuf.Service): Record<string, ServiceDefinition[string]> {
  const path = service.fullName.replace(/^\./, '')
  return Object.fromEntries(
    service.methodsArray.map((method) => [
      method.name,
      {
        path: `/${path}/${method.name}`,
        requestStream: method.requestStream ?? false,
        responseStream: method.responseStream ?? false,
        ...codec('request', method.resolvedRequestType),
        ...codec('response', method.resolvedResponseType),
      } as ServiceDefinition[string],
    ]),
  )
}

function codec(side: 'request' | 'response', type: protobuf.Type | null): Readonly<Record<string, unknown>> {
  if (type === null) throw new Error('the schema of the gRPC API is not resolved')
  return {
    [`${side}Serialize`]: (message: Message) => encodeMessage(type, message),
    [`${side}Deserialize`]: (bytes: Buffer) => {
      checkSize(type, bytes)
      return decodeMessage(type, bytes)
    },
  }
}

/** A general decoder makes objects of many times the bytes of a message. @throws ProtoError */
function checkSize(type: protobuf.Type, bytes: Buffer): void {
  if (bytes.byteLength <= smallMessageBytes) return
  if (type.name !== 'RepositoryModelLoadRequest') throw new ProtoError(`more than ${smallMessageBytes} bytes`)
  const reader = new ProtoReader(bytes)
  for (let fields = 0; reader.next(); reader.skip())
    if (++fields > mostLoadFields) throw new ProtoError(`more than ${mostLoadFields} parameters`)
}

function inferenceImplementation(
  server: ModelServer,
  pool: CodecPool,
  draining: AbortSignal,
  log: Log,
): UntypedServiceImplementation {
  const methods = Object.entries(unaryMethods(server)).map(
    ([name, method]) => [name, unary(method, log)] as const,
  )
  return {
    ...Object.fromEntries(methods),
    ModelInfer: unaryInfer(server, pool, log),
    ModelStreamInfer: streamInfer(server, pool, draining, log),
  }
}

function unary(
  method: UnaryMethod,
  log: Log,
): (call: ServerUnaryCall<Message, Message>, answer: sendUnaryData<Message>) => void {
  return (call, answer) => {
    answerOf(method, call.request).then(
      (message) => answer(null, message),
      (error: unknown) => answer(grpcStatus(error, log)),
    )
  }
}

/** Rejects where the method throws. */
async function answerOf(method: UnaryMethod, request: Message): Promise<Message> {
  return method(request)
}
