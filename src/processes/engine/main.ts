import '../../lifecycle/no-telemetry.js'
import '../../lifecycle/catch-warnings.js'
import { rmSync } from 'node:fs'
import { keepFontListIn } from './caption-fonts.js'
import { Engine } from './engine.js'
import type { EngineOutput, EngineSetup, FromEngine, ToEngine } from './protocol.js'
import { resultFields } from './result-frame.js'
import { leaveParent, parentChannel } from '../parent-channel.js'
import { createPrivateFolder } from '../private-folder.js'
import { toErrorRecord } from '../../errors.js'
import { DescriptorWatch } from '../../lifecycle/descriptor-watch.js'
import { createLog, type Log } from '../../lifecycle/log.js'
import { nodeWarnings } from '../../lifecycle/node-warnings.js'
import { byTrueName } from '../../lifecycle/system-limit.js'

/**
 * Entry of the engine process, started by `processes/engine/engine-process.ts` with an IPC channel and one for frames.
 * It ends with its parent, and decoders carry a parent-death signal.
 */
let engine: Engine | undefined
let log: Log | undefined
let tempDir: string | undefined

// Control says nothing over it.
const channel = parentChannel({})

function send(message: FromEngine): void {
  channel.send(message)
}

const out: EngineOutput = {
  send,
  sendResult: (result) =>
    channel.sendBytes(resultFields(result), ...(result.picture === undefined ? [] : [result.picture])),
  get unsentBytes() {
    return channel.unsentBytes
  },
}

function told(cameraId: string, work: Promise<void> | undefined): void {
  work?.catch((error: unknown) => log?.error({ cameraId, err: error }, 'camera change failed'))
}

async function setUp(setup: EngineSetup): Promise<void> {
  const { level } = setup.log
  const settings = { ...setup.log, level: setup.isTrial === true ? 'error' : level } as const
  const own = createLog(settings, `gantry-engine-${setup.index}`)
  log = own
  nodeWarnings.tell(own)
  engine = new Engine(setup, out, own)
  keepHouse(own)
  new DescriptorWatch(own)
  try {
    await engine.start()
    own.level = level
  } catch (error) {
    send({ type: 'failed', error: toErrorRecord(byTrueName('the engine cannot start', error)) })
  }
}

/** Captions are drawn without it all the same. */
function keepHouse(log: Log): void {
  try {
    tempDir = createPrivateFolder()
    keepFontListIn(tempDir)
  } catch (error) {
    log.warn({ err: error }, 'no temporary folder: the list of fonts is kept where the system has it')
  }
}

async function stop(drainMs: number): Promise<void> {
  await engine?.stop(drainMs)
  if (tempDir !== undefined) rmSync(tempDir, { recursive: true, force: true })
  send({ type: 'stopped' })
  await leaveParent(channel)
}

function receive(message: ToEngine): void {
  switch (message.type) {
    case 'setup':
      void setUp(message.setup)
      return
    case 'setCamera':
      told(message.camera.id, engine?.setCamera(message))
      return
    case 'removeCamera':
      told(message.cameraId, engine?.removeCamera(message.cameraId))
      return
    case 'cameraShapes':
      engine?.takeCameraShapes(message.shapes)
      return
    case 'card':
      engine?.takeCard(message.requestId, message.answer)
      return
    case 'cardHasRoom':
      engine?.cardHasRoom(message.cameraId)
      return
    case 'pictures':
      engine?.showPictures(message.cameras)
      return
    case 'ask':
      engine?.answer(message.question).then(
        (value) => send({ type: 'answer', requestId: message.requestId, value }),
        (error: unknown) =>
          send({ type: 'refused', requestId: message.requestId, error: toErrorRecord(error) }),
      )
      return
    case 'stop':
      void stop(message.drainMs)
      return
    default:
      message satisfies never
  }
}

// The parent decides when the engine stops; a Ctrl-C reaches the whole process group.
process.on('SIGINT', () => undefined)
process.on('SIGTERM', () => undefined)
process.on('message', (message: ToEngine) => receive(message))
send({ type: 'online' })
