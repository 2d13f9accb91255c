import '../../lifecycle/no-telemetry.js'
import '../../lifecycle/catch-warnings.js'
import { Socket } from 'node:net'
import { ProcessBeat } from '../engine/process-beat.js'
import { fromBase64 } from '../../lifecycle/base64.js'
import { takeLess, weighSession } from '../../lifecycle/give-way.js'
import { DescriptorWatch } from '../../lifecycle/descriptor-watch.js'
import { createLog } from '../../lifecycle/log.js'
import { nodeWarnings } from '../../lifecycle/node-warnings.js'
import { keepYoungGenerationSmall } from '../../lifecycle/v8-flags.js'
import { setPeer } from '../../api/peer.js'
import { leaveParent, parentChannel } from '../parent-channel.js'
import type { FromStream, StreamSetup, ToStream } from './protocol.js'
import { readPublished } from './published-frame.js'
import { StreamHost } from './stream-host.js'

/**
 * Entry of the stream process, started by `processes/stream/stream-process.ts` with an IPC channel and one for frames.
 *
 * A message to a thousand clients is a thousand writes: here they take no time from the loop that publishes, and less than their share
 * from the runs of the detector. It ends with its parent.
 */
const beatMs = 1_000
/** Viewers of a machine whose cores are all busy wait a little longer; the detector does not wait for viewers. */
const nice = 5
/** A crowd takes a good part of a core with every message, so of cores that are all busy it gets less: it waits for a run to end. */
const crowd = { clients: 300, nice: 10 }

let host: StreamHost | undefined
let sessionNice = nice
const beat = new ProcessBeat()

const channel = parentChannel({ bytes: (body) => host?.publish(readPublished(body)) })

function send(message: FromStream): void {
  channel.send(message)
}

function setUp(setup: StreamSetup): void {
  const log = createLog(setup.log, 'gantry-stream')
  nodeWarnings.tell(log)
  host = new StreamHost(setup, send, log)
  new DescriptorWatch(log)
  keepYoungGenerationSmall()
  send({ type: 'ready' })
  setInterval(() => {
    weighViewers()
    sendBeat()
  }, beatMs)
}

function weighViewers(): void {
  const wanted = host && host.clients >= crowd.clients ? crowd.nice : nice
  if (wanted !== sessionNice && weighSession(wanted)) sessionNice = wanted
}

function sendBeat(): void {
  if (host) send({ type: 'beat', beat: { ...beat.read(), clients: host.clients, reading: host.reading() } })
}

async function stop(): Promise<void> {
  // What was published before is still on its way.
  await channel.ended
  await host?.stop()
  sendBeat()
  send({ type: 'stopped' })
  await leaveParent(channel)
}

function receive(message: ToStream, handle: unknown): void {
  switch (message.type) {
    case 'setup':
      setUp(message.setup)
      return
    case 'begin':
      host?.begin(message.newest)
      return
    case 'nodes':
      host?.nodes(message.nodes)
      return
    case 'client':
      // Without a handle: the client was gone before it arrived.
      if (handle instanceof Socket) {
        if (message.peer) setPeer(handle, message.peer)
        host?.accept(message.request, handle, fromBase64(message.head), message.behind)
      }
      return
    case 'ask':
      sendBeat()
      send({ type: 'answer', requestId: message.requestId, value: null })
      return
    case 'stop':
      void stop()
      return
    default:
      message satisfies never
  }
}

takeLess(nice)
// The parent decides when the process stops; a Ctrl-C reaches the whole process group.
process.on('SIGINT', () => undefined)
process.on('SIGTERM', () => undefined)
process.on('message', (message: ToStream, handle: unknown) => receive(message, handle))
send({ type: 'online' })
