import '../../lifecycle/no-telemetry.js'
import '../../lifecycle/catch-warnings.js'
import { toErrorRecord } from '../../errors.js'
import { DescriptorWatch } from '../../lifecycle/descriptor-watch.js'
import { createLog } from '../../lifecycle/log.js'
import { nodeWarnings } from '../../lifecycle/node-warnings.js'
import { byTrueName } from '../../lifecycle/system-limit.js'
import { ProcessBeat } from '../engine/process-beat.js'
import { leaveParent, parentChannel } from '../parent-channel.js'
import type { DoorSetup, FromDoor, ToDoor } from './protocol.js'
import { TlsDoor } from './tls-door.js'

/**
 * Entry of the TLS door, started by `processes/tls-door/tls-door-process.ts` with an IPC channel and one for frames.
 *
 * Handshakes and ciphers take time of this loop and none of that which publishes. It does not give way as the other processes of clients do:
 * probes and every byte of every request pass here, and where the cores are all busy each of them would wait (docs/decisions/0014). It ends
 * with its parent.
 */
const beatMs = 1_000

let door: TlsDoor | undefined
const beat = new ProcessBeat()

const channel = parentChannel({})

function send(message: FromDoor): void {
  channel.send(message)
}

async function setUp(setup: DoorSetup): Promise<void> {
  const log = createLog(setup.log, 'gantry-tls')
  nodeWarnings.tell(log)
  new DescriptorWatch(log)
  try {
    door = new TlsDoor(setup, log)
    send({ type: 'ready', ports: await door.listen() })
    setInterval(() => sendBeat(), beatMs)
  } catch (error) {
    send({ type: 'failed', error: toErrorRecord(byTrueName('the TLS door cannot start', error)) })
  }
}

function sendBeat(): void {
  if (door) send({ type: 'beat', beat: { ...beat.read(), ...door.reading() } })
}

async function stop(drainMs: number): Promise<void> {
  await door?.stop(drainMs)
  sendBeat()
  send({ type: 'stopped' })
  await leaveParent(channel)
}

function receive(message: ToDoor): void {
  switch (message.type) {
    case 'setup':
      void setUp(message.setup)
      return
    case 'material':
      door?.use(message.material)
      return
    case 'ask':
      sendBeat()
      send({ type: 'answer', requestId: message.requestId, value: null })
      return
    case 'stop':
      void stop(message.drainMs)
      return
    default:
      message satisfies never
  }
}

// The parent decides when the process stops; a Ctrl-C reaches the whole process group.
process.on('SIGINT', () => undefined)
process.on('SIGTERM', () => undefined)
process.on('message', (message: ToDoor) => receive(message))
send({ type: 'online' })
