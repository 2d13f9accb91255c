import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readPeerPicture } from '../../src/cluster/peer-message.js'
import { parseCursor } from '../../src/delivery/websocket/cursor.js'
import { detectionsMessageSchema, type DetectionsMessage } from '../../src/messages/detections-message.js'
import { kafkaMissing } from '../support/kafka.js'
import { consumeAll } from '../support/kafka-records.js'
import { TestNodes } from '../support/nodes.js'
import { descendants } from '../support/processes.js'
import type { TestService, TestStream } from '../support/service.js'
import { until } from '../support/until.js'

const cameras = 8
const missing = await kafkaMissing()

type Result = Pick<DetectionsMessage, 'cameraId' | 'seq' | 'owner' | 'capturedAt'>
const keyOf = ({ cameraId, seq, owner }: Result) => `${cameraId} ${owner?.generation} ${seq}`

describe.skipIf(missing !== undefined)('the stream of several nodes', () => {
  let nodes: TestNodes

  beforeEach(async () => {
    nodes = await TestNodes.start()
  }, 120_000)
  afterEach(() => nodes[Symbol.asyncDispose]())

  /** So many nodes, of which each has cameras, and who has which. */
  async function cluster(...names: readonly string[]) {
    const started: TestService[] = []
    for (const name of names)
      started.push(await nodes.add(name, { pipeline: { cameras: nodes.cameras(cameras) } }))
    const views = await nodes.spread(started[0]!, cameras, names.length)
    const of = (name: string) => views.filter((view) => view.node === name).map((view) => view.id)
    return { started, of }
  }

  const resultsOf = ({ messages }: TestStream) =>
    messages.flatMap((message) => (message.type === 'detections' ? [message] : []))
  const camerasOf = (stream: TestStream) => new Set(resultsOf(stream).map(({ cameraId }) => cameraId))
  const seesAll = (stream: TestStream) =>
    until('all cameras', () => camerasOf(stream).size === cameras, 30_000)

  /** Results in the topic of some time on. */
  async function published(fromMs: number, toMs: number): Promise<readonly DetectionsMessage[]> {
    const consumer = await consumeAll(nodes.broker.address, `${nodes.id}.detections`)
    const all = () => consumer.records.map(({ value }) => detectionsMessageSchema.parse(value))
    await until('the topic', () => all().some(({ capturedAt }) => Date.parse(capturedAt) > toMs), 60_000, 250)
    await consumer.stop()
    return all().filter(({ capturedAt }) => Date.parse(capturedAt) > fromMs && Date.parse(capturedAt) <= toMs)
  }

  /** Those of the topic that did not come, in words. */
  async function holes(stream: TestStream, from: string, to: string, only?: readonly string[]) {
    const seen = new Set(resultsOf(stream).map(keyOf))
    const all = await published(Date.parse(from), Date.parse(to))
    const wanted = all.filter(({ cameraId }) => only === undefined || only.includes(cameraId))
    expect(wanted.length).toBeGreaterThan(10)
    return wanted
      .filter((message) => !seen.has(keyOf(message)))
      .map((message) => `${keyOf(message)} ${message.capturedAt}`)
  }
  /** Of each camera it has one that is later. */
  const hasAll = (stream: TestStream, afterMs: number) =>
    new Set(
      resultsOf(stream).flatMap((message) =>
        Date.parse(message.capturedAt) > afterMs ? [message.cameraId] : [],
      ),
    ).size === cameras
  const last = (stream: TestStream) => resultsOf(stream).at(-1)!

  it('R172: has the cameras of all on each of them, with the pictures that are wanted, and goes on when one dies', async () => {
    const { started, of } = await cluster('a', 'b', 'c')
    const [first, second, third] = started as [TestService, TestService, TestService]
    const streams = await Promise.all(started.map((service) => service.stream()))
    for (const stream of streams) await seesAll(stream)
    const [pictured = ''] = of('b')
    const wants = { cameras: ['*'], frames: true, frameCameras: [pictured] }
    const viewer = await third.stream(wants)
    await until('a picture of another node', () => viewer.pictures.length > 2, 30_000)
    for (const picture of viewer.pictures) expect(readPeerPicture(picture)?.cameraId).toBe(pictured)
    await seesAll(viewer)

    second.kill('SIGKILL')
    await second.exited()
    const diedMs = Date.now()
    const moved = of('b')
    const [stream] = streams as [TestStream]
    await until(
      'its cameras again',
      () => {
        const since = resultsOf(stream).filter(({ capturedAt }) => Date.parse(capturedAt) > diedMs)
        return moved.every((cameraId) => since.some((message) => message.cameraId === cameraId))
      },
      60_000,
    )
    await until('a picture again', () => {
      const newest = viewer.pictures.at(-1)
      const { seq } = (newest && readPeerPicture(newest)) ?? { seq: -1 }
      const result = resultsOf(viewer).find((message) => message.cameraId === pictured && message.seq === seq)
      return result !== undefined && Date.parse(result.capturedAt) > diedMs
    }, 30_000) // prettier-ignore
    for (const each of [stream, viewer]) {
      const keys = resultsOf(each).map(keyOf)
      expect(new Set(keys).size).toBe(keys.length)
      expect(each.messages.filter(({ type }) => type === 'gap')).toEqual([])
    }
    // What the dead one had not handed out is in nobody's stream; all others have everything.
    const began = resultsOf(stream)[0]!.capturedAt
    const others = [...of('a'), ...of('c')]
    expect(
      await holes(
        stream,
        new Date(Date.parse(began) + 3_000).toISOString(),
        new Date(Date.parse(last(stream).capturedAt) - 2_000).toISOString(),
        others,
      ),
    ).toEqual([])
    for (const each of [...streams, viewer]) each.close()
    expect(first.stderr).not.toContain('"level":"error"')
  }, 180_000)

  it('R173: goes on behind a cursor of another node from the topic, and of its own from what it keeps', async () => {
    const { started } = await cluster('a', 'b')
    const [first, second] = started as [TestService, TestService]
    const before = await second.stream()
    await seesAll(before)
    const { cursor, capturedAt } = last(before)
    before.close()
    // On the other node.
    const elsewhere = await first.stream({ resumeAfter: cursor })
    // What is live bears the run of that node; what comes from the topic bears times alone.
    const isLive = () => parseCursor(last(elsewhere)?.cursor ?? '0-0').epoch !== '0'
    await until('it is live', isLive, 60_000)
    const upTo = Date.now()
    await until('some more', () => hasAll(elsewhere, upTo), 30_000)
    expect(elsewhere.messages.filter(({ type }) => type === 'gap')).toEqual([])
    expect(await holes(elsewhere, capturedAt, new Date(upTo).toISOString())).toEqual([])
    const keys = resultsOf(elsewhere).map(keyOf)
    expect(new Set(keys).size).toBe(keys.length)
    const positions = resultsOf(elsewhere).map((message) => message.cursor)
    expect(new Set(positions).size).toBe(positions.length)

    // On the same one, after a while.
    const kept = last(elsewhere)
    elsewhere.close()
    const keptMs = Date.now()
    await until('some results', () => Date.now() - keptMs > 1_500, 5_000)
    const again = await first.stream({ resumeAfter: kept.cursor })
    const upToAgain = keptMs + 2_500
    await until('what came meanwhile, and more', () => hasAll(again, upToAgain), 30_000)
    const from = new Date(Date.parse(kept.capturedAt) + 500).toISOString()
    expect(await holes(again, from, new Date(upToAgain).toISOString())).toEqual([])
    const both = [...resultsOf(elsewhere), ...resultsOf(again)].map(keyOf)
    expect(new Set(both).size).toBe(both.length)
    again.close()
  }, 180_000)

  it('R174: has what a node saw while it did not answer, once it does', async () => {
    const { started } = await cluster('a', 'b')
    const [first, second] = started as [TestService, TestService]
    const stream = await first.stream()
    await seesAll(stream)
    await until('some results', () => resultsOf(stream).length > 100, 30_000)
    const from = last(stream).capturedAt
    const streamProcess = descendants(second.pid).find(({ command }) => command.includes('stream'))!
    // Its stream alone: the node itself goes on.
    process.kill(streamProcess.pid, 'SIGKILL')
    await until('all of it again', () => hasAll(stream, Date.parse(from) + 6_000), 60_000)
    const upTo = new Date(Date.parse(from) + 6_000).toISOString()
    expect(await holes(stream, from, upTo)).toEqual([])
    const keys = resultsOf(stream).map(keyOf)
    expect(new Set(keys).size).toBe(keys.length)
    stream.close()
  }, 180_000)
})
