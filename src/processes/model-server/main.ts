import '../../lifecycle/no-telemetry.js'
import '../../lifecycle/catch-warnings.js'
import { Socket } from 'node:net'
import { ProcessBeat } from '../engine/process-beat.js'
import { isInternal, toErrorRecord } from '../../errors.js'
import { DeviceFailedError } from '../../runtime/errors.js'
import { fromBase64 } from '../../lifecycle/base64.js'
import { giveWay } from '../../lifecycle/give-way.js'
import { DescriptorWatch } from '../../lifecycle/descriptor-watch.js'
import { createLog, type Log } from '../../lifecycle/log.js'
import { nodeWarnings } from '../../lifecycle/node-warnings.js'
import { byTrueName } from '../../lifecycle/system-limit.js'
import { takeGrpcLog } from '../../api/grpc/grpc-log.js'
import { openTracing } from '../../tracing/open-tracing.js'
import { setPeer } from '../../api/peer.js'
import { leaveParent, parentChannel } from '../parent-channel.js'
import { ModelServerHost } from './model-server-host.js'
import { RepositoryRefresh } from './repository-refresh.js'
import type {
  FromModelServer,
  ModelServerAnswers,
  ModelServerQuestion,
  ModelServerSetup,
  ToModelServer,
} from './protocol.js'

/**
 * Entry of the model server process, started by `processes/model-server/model-server-process.ts` with an IPC channel and one for frames.
 * It ends with its parent.
 */
const beatMs = 1_000

let host: ModelServerHost | undefined
let log: Log | undefined
let nice = 0
const beat = new ProcessBeat()

const refresh = new RepositoryRefresh((refreshId) => send({ type: 'refresh', refreshId }))

// Control says nothing over it.
const channel = parentChannel({})

function send(message: FromModelServer): void {
  channel.send(message)
}

async function setUp(setup: ModelServerSetup): Promise<void> {
  nice = setup.modelServer.nice
  // Threads inherit it, so it comes before the first of them.
  if (setup.besideCameras) letCamerasFirst()
  log = createLog(setup.log, 'gantry-models')
  nodeWarnings.tell(log)
  takeGrpcLog(log)
  new DescriptorWatch(log)
  try {
    const { version, pipeline } = setup
    const tracing = await openTracing(setup.tracing, { process: 'model-server', pipeline, version }, log)
    const events = {
      released: (model: string) => send({ type: 'released', model }),
      refresh: () => refresh.ask(),
      deviceFailed: (deviceId: number, reason: string) => {
        send({ type: 'deviceFailed', deviceId, reason })
        send({ type: 'failed', error: toErrorRecord(new DeviceFailedError(reason)) })
      },
    }
    host = new ModelServerHost(setup, log, events, tracing)
    await host.listen()
    send({ type: 'ready' })
    setInterval(() => sendBeat(), beatMs)
    send({ type: 'loaded', failed: await host.loadModels() })
    sendBeat()
  } catch (error) {
    send({ type: 'failed', error: toErrorRecord(byTrueName('the model server cannot start', error)) })
  }
}

function letCamerasFirst(): void {
  if (nice > 0) giveWay(nice)
}

function sendBeat(): void {
  if (host === undefined) return
  host.lookAtProviders()
  send({ type: 'beat', beat: { ...beat.read(), ...host.state() } })
}

async function answer(
  question: ModelServerQuestion,
): Promise<ModelServerAnswers[ModelServerQuestion['type']]> {
  switch (question.type) {
    case 'metrics':
      return host?.metrics(question) ?? { text: '', clients: [], ended: [] }
    case 'models':
      return host?.models() ?? []
    case 'drain':
      await host?.drain(question.withinMs)
      return null
    default:
      return question satisfies never
  }
}

async function stop(): Promise<void> {
  await host?.stop()
  send({ type: 'stopped' })
  await leaveParent(channel)
}

function receive(message: ToModelServer, handle: unknown): void {
  switch (message.type) {
    case 'setup':
      void setUp(message.setup)
      return
    case 'devices':
      host?.useDevices(message.devices)
      return
    case 'tls':
      host?.useTls(message.material)
      return
    case 'giveWay':
      letCamerasFirst()
      return
    case 'connection':
      // Without a handle: the client was gone before it arrived.
      if (handle instanceof Socket) {
        if (message.peer) setPeer(handle, message.peer)
        host?.adopt(handle, fromBase64(message.head))
      }
      return
    case 'grpcConnection':
      if (handle instanceof Socket) host?.adoptGrpc(handle)
      return
    case 'ask': {
      const { requestId } = message
      answer(message.question).then(
        (value) => send({ type: 'answer', requestId, value }),
        (error: unknown) => {
          if (isInternal(error))
            log?.error({ err: error, question: message.question.type }, 'question failed')
          send({ type: 'refused', requestId, error: toErrorRecord(error) })
        },
      )
      return
    }
    case 'refreshed':
      refresh.done(message.refreshId)
      return
    case 'stop':
      void stop()
      return
    default:
      message satisfies never
  }
}

// The parent decides when the process stops; a Ctrl-C reaches the whole process group.
process.on('SIGINT', () => undefined)
process.on('SIGTERM', () => undefined)
process.on('message', (message: ToModelServer, handle: unknown) => receive(message, handle))
send({ type: 'online' })
