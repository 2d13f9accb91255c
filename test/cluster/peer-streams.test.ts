import { describe, expect, it, onTestFinished } from 'vitest'
import { PeerStreams } from '../../src/cluster/peer-streams.js'
import { pictureMessage } from '../../src/messages/picture-message.js'
import type { DetectionsMessage } from '../../src/messages/detections-message.js'
import { startHub, type Fixture } from '../delivery/websocket/stream-fixture.js'
import { type DetectionsOverrides, detectionsText } from '../support/detections.js'
import { recordingLog } from '../support/silent-log.js'
import { TcpProxy } from '../support/tcp-proxy.js'
import { until } from '../support/until.js'

/** Streams of other nodes, and what came of them. */
function streams() {
  const came: (Pick<DetectionsMessage, 'cameraId' | 'seq'> & { picture: boolean })[] = []
  const gaps: number[] = []
  const { log, lines } = recordingLog()
  const peers = new PeerStreams({
    ...{ token: undefined, tls: undefined, log },
    result: (cameraId, json, picture) => {
      const { seq } = JSON.parse(json.toString()) as DetectionsMessage
      came.push({ cameraId, seq, picture: picture !== undefined })
    },
    gap: (dropped) => gaps.push(dropped),
    newest: () => came.length,
  })
  onTestFinished(() => peers.stop())
  return { peers, came, gaps, lines }
}

async function hub(): Promise<Fixture> {
  const fixture = await startHub()
  onTestFinished(() => fixture.stop())
  return fixture
}

let clock = 0
/** Of now, and each later than the one before. */
const result = (cameraId: string, seq: number, more: DetectionsOverrides = {}) =>
  detectionsText({ cameraId, seq, capturedAtMs: (clock = Math.max(clock + 1, Date.now())), ...more })

const urlOf = ({ port }: { port: number }) => `http://127.0.0.1:${port}`
const all = new Set(['*'])
const none = new Set<string>()

describe('PeerStreams', () => {
  it('asks nobody for anything while nobody watches, and for no more than is watched', async () => {
    const other = await hub()
    const { peers, came } = streams()
    peers.nodes([{ node: 'b', url: urlOf(other) }])
    expect(other.hub.clients).toBe(0)
    peers.want(new Set(['dock-1', 'gate']), new Set(['gate']))
    await until('it asks', () => other.hub.resultCameras.size === 2)
    expect([...other.hub.resultCameras].sort()).toEqual(['dock-1', 'gate'])
    expect([...other.hub.pictureCameras]).toEqual(['gate'])
    for (const cameraId of ['yard', 'dock-1', 'gate']) {
      const header = {
        ...({
          type: 'picture',
          cameraId,
          seq: 1,
          capturedAt: new Date(clock).toISOString(),
          mime: 'image/jpeg',
        } as const),
        ...{ widthPx: 4, heightPx: 4, sourceWidthPx: 4, sourceHeightPx: 4, sourceXPx: 0, sourceYPx: 0 },
      }
      other.hub.publish(result(cameraId, 1), pictureMessage(header, Buffer.alloc(8)))
    }
    await until('both', () => came.length === 2)
    expect(came).toEqual([
      { cameraId: 'dock-1', seq: 1, picture: false },
      { cameraId: 'gate', seq: 1, picture: true },
    ])
    // Others are watched beside them.
    peers.want(new Set(['dock-1', 'gate', 'yard']), none)
    await until('it asks for more', () => other.hub.resultCameras.size === 3)
    await until('it asks for no picture', () => other.hub.pictureCameras.size === 0)
  })

  it('R174: goes on behind the last result when a line was cut, and brings none twice', async () => {
    const other = await hub()
    const proxy = await TcpProxy.start(other.port)
    onTestFinished(() => proxy.stop())
    const { peers, came, lines } = streams()
    peers.nodes([{ node: 'b', url: urlOf(proxy) }])
    peers.want(all, none)
    await until('it asks', () => other.hub.resultCameras.has('*'))
    let seq = 0
    const publish = (count: number) => {
      for (let index = 0; index < count; index += 1) other.hub.publish(result('dock-1', (seq += 1)))
    }
    for (let round = 0; round < 4; round += 1) {
      publish(50)
      proxy.fault = { kind: 'reset' }
      publish(50)
      proxy.fault = { kind: 'none' }
      await until('all of it', () => came.length >= seq, 10_000)
    }
    expect(came.map((one) => one.seq)).toEqual(Array.from({ length: seq }, (_, index) => index + 1))
    await until('it is told', () => lines.some(({ msg }) => msg === 'live results of a node again'))
    expect(lines.some(({ msg, node }) => msg === 'no live results of a node' && node === 'b')).toBe(true)
  })

  it('says until when and from where on it has everything', async () => {
    const other = await hub()
    const { peers, came } = streams()
    expect(peers.wholeFrom(['dock-1'])).toBe(Infinity)
    peers.want(new Set(['dock-1']), none)
    // Who else there is, it does not know yet.
    expect(peers.wholeFrom(['dock-1'])).toBe(Infinity)
    peers.nodes([{ node: 'b', url: urlOf(other) }])
    await until('it is asked', () => peers.wholeFrom(['dock-1']) === 1)
    expect(peers.wholeFrom(['gate'])).toBe(Infinity)
    other.hub.publish(result('dock-1', 1))
    await until('it came', () => came.length === 1)
    peers.want(new Set(['dock-1', 'gate']), none)
    await until('it is asked for both', () => peers.wholeFrom(['dock-1', 'gate']) === 2)
    expect(peers.wholeFrom(['dock-1'])).toBe(1)
    const beforeMs = Date.now()
    await other.stop()
    await until('it is heard of no more', () => Date.now() > beforeMs + 200)
    const heldMs = peers.completeMs
    await until('a while', () => Date.now() > beforeMs + 400)
    expect(peers.completeMs).toBe(heldMs)
    // It has left the cluster.
    peers.nodes([])
    expect(peers.completeMs).toBeGreaterThan(heldMs)
  })

  it('tells what another node has left out, and passes on nothing of a former owner', async () => {
    const other = await hub()
    const { peers, came, gaps } = streams()
    peers.nodes([{ node: 'b', url: urlOf(other) }])
    peers.want(all, none)
    await until('it is asked', () => peers.wholeFrom(['*']) === 1)
    other.hub.publish(result('dock-1', 1, { owner: { node: 'b', generation: 5 } }))
    other.hub.publish(result('dock-1', 2, { owner: { node: 'a', generation: 4 } }))
    other.hub.publish(result('dock-1', 3, { owner: { node: 'b', generation: 5 } }))
    await until('both', () => came.length === 2)
    expect(came.map(({ seq }) => seq)).toEqual([1, 3])
    other.hub.missed('dock-1', 7)
    other.hub.publish(result('dock-1', 4, { owner: { node: 'b', generation: 5 } }))
    await until('the gap', () => gaps.length > 0)
    expect(gaps).toEqual([7])
    expect(peers.wholeFrom(['*'])).toBe(3)
  })

  it('brings nothing that was long over when somebody began to watch', async () => {
    const other = await hub()
    const { peers, came } = streams()
    peers.nodes([{ node: 'b', url: urlOf(other) }])
    peers.want(all, none)
    await until('it is asked', () => other.hub.resultCameras.has('*'))
    other.hub.publish(result('dock-1', 1, { capturedAtMs: Date.now() - 60_000 }))
    other.hub.publish(result('dock-1', 2))
    await until('the new one', () => came.length === 1)
    expect(came[0]?.seq).toBe(2)
  })
})
