import { afterEach, describe, expect, it } from 'vitest'
import { pictureMessage } from '../../../src/messages/picture-message.js'
import { detectionsMessage, detectionsText, textOf } from '../../support/detections.js'
import { until } from '../../support/until.js'
import { deafClient, startHub, TestClient, type Fixture } from './stream-fixture.js'

let fixture: Fixture
afterEach(() => fixture.stop())

/** Messages are gathered for as long as may be. */
const alwaysBusy = { idleLoad: -1, busyLoad: 0 }

const pictureHeader = (cameraId: string, seq: number) => ({
  type: 'picture' as const,
  cameraId,
  seq,
  capturedAt: new Date().toISOString(),
  widthPx: 640,
  heightPx: 360,
  sourceWidthPx: 1280,
  sourceHeightPx: 720,
  sourceXPx: 0,
  sourceYPx: 0,
  mime: 'image/jpeg' as const,
})

/** About 100 kB of JSON, each different. */
const bigMessage = (seq: number) =>
  detectionsText({
    seq,
    detections: Array.from({ length: 900 }, (_, i) => ({
      label: `label-${seq}-${i}`,
      score: 0.5,
      boxPx: { x1: i, y1: i, x2: i + 10.25, y2: i + 20.5 },
    })),
  })

describe('subscribing', () => {
  it('greets, confirms with the defaults filled in, and sends the Kafka value plus a cursor', async () => {
    fixture = await startHub()
    const client = await TestClient.connect(fixture.port)
    expect(client.of('hello')[0]).toEqual({
      type: 'hello',
      protocol: 'gantry.v1',
      service: 'test',
      version: '0.0.0',
      cursor: 'e1-0',
    })
    client.send({ type: 'subscribe', minScore: 0.3 })
    expect(await client.next('subscribed')).toEqual({
      type: 'subscribed',
      cameras: ['*'],
      labels: [],
      minScore: 0.3,
      detections: true,
      events: true,
      frames: false,
    })
    const message = detectionsMessage({ seq: 7 })
    fixture.hub.publish(textOf(message))
    expect(await client.next('detections')).toEqual({ type: 'detections', cursor: 'e1-1', ...message })
  })

  it('sends nothing before a subscribe, nor what was published before it', async () => {
    fixture = await startHub()
    const client = await TestClient.connect(fixture.port)
    fixture.hub.publish(detectionsText({ seq: 1 }))
    client.send({ type: 'subscribe' })
    await client.next('subscribed')
    fixture.hub.publish(detectionsText({ seq: 2 }))
    expect((await client.next('detections')).seq).toBe(2)
  })

  it('keeps only the wanted cameras, labels and scores, and says so when nothing is left', async () => {
    fixture = await startHub()
    const client = await TestClient.subscribed(fixture.port, {
      cameras: ['dock-1'],
      labels: ['helmet'],
      minScore: 0.5,
    })
    fixture.hub.publish(detectionsText({ cameraId: 'gate', seq: 1 }))
    fixture.hub.publish(detectionsText({ seq: 2 }))
    const boxPx = { x1: 1, y1: 1, x2: 2, y2: 2 }
    fixture.hub.publish(detectionsText({ seq: 3, detections: [{ label: 'helmet', score: 0.49, boxPx }] }))
    await client.next('detections', 2)
    expect(
      client.of('detections').map(({ seq, detections }) => [seq, detections.map((d) => d.label)]),
    ).toEqual([
      [2, ['helmet']],
      [3, []],
    ])
  })

  it('leaves out nothing of what still waits to be sent when somebody who is live subscribes again', async () => {
    fixture = await startHub({ gatherMs: 300, idleLoad: -2, busyLoad: -1 })
    const client = await TestClient.subscribed(fixture.port, { cameras: ['dock-1'] })
    fixture.hub.publish(detectionsText({ seq: 1 }))
    await client.next('detections')
    fixture.hub.publish(detectionsText({ seq: 2 }))
    client.send({ type: 'subscribe', cameras: ['dock-1', 'gate'] })
    await client.next('subscribed', 2)
    expect((await client.next('detections', 2)).seq).toBe(2)
  })

  it('lets a later subscribe replace the earlier one', async () => {
    fixture = await startHub()
    const client = await TestClient.subscribed(fixture.port, { cameras: ['dock-1'] })
    client.send({ type: 'subscribe', cameras: ['gate'] })
    await client.next('subscribed', 2)
    fixture.hub.publish(detectionsText({ cameraId: 'dock-1', seq: 1 }))
    fixture.hub.publish(detectionsText({ cameraId: 'gate', seq: 9 }))
    expect((await client.next('detections')).cameraId).toBe('gate')
  })

  it('sends detections to nobody who declined them', async () => {
    fixture = await startHub()
    const silent = await TestClient.subscribed(fixture.port, { detections: false })
    const other = await TestClient.subscribed(fixture.port)
    fixture.hub.publish(detectionsText())
    await other.next('detections')
    silent.send('?')
    await silent.next('error')
    expect(silent.of('detections')).toEqual([])
  })
})

describe('pictures', () => {
  it('sends those of the cameras that are named for it, and results of all', async () => {
    fixture = await startHub()
    const viewer = await TestClient.subscribed(fixture.port, { frames: true, frameCameras: ['gate'] })
    const none = await TestClient.subscribed(fixture.port, { cameras: ['dock-1'], frames: true, frameCameras: ['gate'] }) // prettier-ignore
    expect([...fixture.hub.pictureCameras]).toEqual(['gate'])
    for (const cameraId of ['dock-1', 'gate'])
      fixture.hub.publish(detectionsText({ cameraId, seq: 5 }), pictureMessage(pictureHeader(cameraId, 5), Buffer.alloc(4))) // prettier-ignore
    await viewer.next('detections', 2)
    expect(viewer.of('detections').map(({ cameraId }) => cameraId)).toEqual(['dock-1', 'gate'])
    expect(viewer.pictures.map(({ header }) => header.cameraId)).toEqual(['gate'])
    await none.next('detections')
    expect(none.pictures).toEqual([])
  })

  it('come as a binary message before the detections of the same frame, to those who asked', async () => {
    fixture = await startHub()
    const demand: string[][] = []
    fixture.hub.onPictureCameras = (cameras) => demand.push([...cameras].sort())
    const viewer = await TestClient.subscribed(fixture.port, { cameras: ['dock-1', 'gate'], frames: true })
    const reader = await TestClient.subscribed(fixture.port)
    const header = pictureHeader('dock-1', 5)
    fixture.hub.publish(detectionsText({ seq: 5 }), pictureMessage(header, Buffer.alloc(4, 7)))
    await viewer.next('detections')
    await reader.next('detections')
    expect(viewer.pictures).toHaveLength(1)
    expect(viewer.pictures[0]?.header).toEqual(header)
    expect([...(viewer.pictures[0]?.jpeg ?? [])]).toEqual([7, 7, 7, 7])
    expect(viewer.messages[viewer.pictures[0]?.before ?? 0]).toMatchObject({ type: 'detections', seq: 5 })
    expect(reader.pictures).toEqual([])
    const all = await TestClient.subscribed(fixture.port, { frames: true })
    expect([...fixture.hub.pictureCameras].sort()).toEqual(['*', 'dock-1', 'gate'])
    viewer.socket.close()
    all.socket.close()
    await until('no demand left', () => fixture.hub.pictureCameras.size === 0)
    expect(demand[0]).toEqual(['dock-1', 'gate'])
    expect(demand[1]).toEqual(['*', 'dock-1', 'gate'])
    expect(demand.at(-1)).toEqual([])
  })

  it('are skipped first when a client falls behind, while its detections go on', async () => {
    fixture = await startHub({ maxPictureBufferedBytes: 0, maxBufferedBytes: 64 * 1024 ** 2 })
    const deaf = await deafClient(fixture.port, { frames: true })
    for (let seq = 1; seq <= 300; seq += 1)
      fixture.hub.publish(
        detectionsText({ seq }),
        pictureMessage(pictureHeader('dock-1', seq), Buffer.alloc(100_000)),
      )
    expect(fixture.counted('picture_skipped')).toBeGreaterThan(0)
    expect(fixture.counted('sent')).toBe(300)
    deaf.destroy()
  })
})

describe('wrong input', () => {
  it.each([
    ['text that is no JSON', '{', 'the message is not JSON'],
    ['an unknown type', { type: 'shout' }, 'type: must be subscribe'],
    ['an unknown key', { type: 'subscribe', camera: 'x' }, 'camera: unknown key'],
    ['a wrong type', { type: 'subscribe', minScore: 'high' }, 'minScore: must be a number, not a text'],
    [
      'several things',
      { type: 'subscribe', cameras: '*', frames: 1 },
      'cameras: must be a list, not a text; frames: ',
    ],
    ['a score outside 0..1', { type: 'subscribe', minScore: 3 }, 'minScore: '],
    ['a malformed cursor', { type: 'subscribe', resumeAfter: 'yesterday' }, 'resumeAfter: must be a cursor'],
  ])('answers %s with an error that names it and keeps the connection', async (_, body, text) => {
    fixture = await startHub()
    const client = await TestClient.connect(fixture.port)
    client.send(body)
    const error = await client.next('error')
    expect(error).toMatchObject({ code: 'GANTRY_WS_MESSAGE' })
    expect(error.message).toContain(text)
    expect(error.hint).not.toBe('')
    client.send({ type: 'subscribe' })
    await client.next('subscribed')
  })

  it('answers a binary message with an error', async () => {
    fixture = await startHub()
    const client = await TestClient.connect(fixture.port)
    client.socket.send(Buffer.from('{"type":"subscribe"}'), { binary: true })
    expect((await client.next('error')).code).toBe('GANTRY_WS_MESSAGE')
  })

  it('closes with 1008 at the fifth bad message', async () => {
    fixture = await startHub()
    const client = await TestClient.connect(fixture.port)
    for (let i = 0; i < 5; i += 1) client.send('nonsense')
    expect(await client.whenClosed()).toEqual({ code: 1008, reason: 'too many bad messages' })
    expect(client.of('error')).toHaveLength(5)
    expect(fixture.counted('rejected')).toBe(5)
  })

  it('refuses a flood of subscribes', async () => {
    fixture = await startHub({ maxSubscribes: 3 })
    const client = await TestClient.connect(fixture.port)
    for (let i = 0; i < 4; i += 1) client.send({ type: 'subscribe' })
    expect(await client.next('error')).toMatchObject({ code: 'GANTRY_RATE_LIMITED' })
    expect(client.of('subscribed')).toHaveLength(3)
  })

  it('R96: answers a ping with its time, before and after a subscribe, and refuses a flood of them', async () => {
    fixture = await startHub({ maxPings: 3 })
    const client = await TestClient.connect(fixture.port)
    const beganMs = Date.now()
    client.send({ type: 'ping' })
    const { at } = await client.next('pong')
    expect(Date.parse(at)).toBeGreaterThanOrEqual(beganMs)
    expect(Date.parse(at)).toBeLessThanOrEqual(Date.now())
    client.send({ type: 'subscribe' })
    await client.next('subscribed')
    for (let i = 0; i < 3; i += 1) client.send({ type: 'ping' })
    const { code, message } = await client.next('error')
    expect({ code, message }).toEqual({ code: 'GANTRY_RATE_LIMITED', message: 'too many ping messages' })
    expect(client.of('pong')).toHaveLength(3)
    fixture.hub.publish(detectionsText())
    await client.next('detections')
  })

  it.each([
    [{ type: 'ping', at: 1 }, 'at: unknown key'],
    [{ type: 'pong' }, 'type: must be subscribe or ping'],
    ['ping', 'the message is not JSON'],
  ])('says what is wrong with %j', async (message, wrong) => {
    fixture = await startHub()
    const client = await TestClient.connect(fixture.port)
    client.send(message)
    expect((await client.next('error')).message).toContain(wrong)
  })

  it('refuses a cursor from the future of this run', async () => {
    fixture = await startHub()
    const client = await TestClient.connect(fixture.port)
    client.send({ type: 'subscribe', resumeAfter: 'e1-99' })
    expect((await client.next('error')).code).toBe('GANTRY_CURSOR')
  })
})

describe('resuming', () => {
  it('replays what was missed, filtered, and then goes on live without hole or repetition', async () => {
    fixture = await startHub({ replayChunk: 3 })
    for (let seq = 1; seq <= 20; seq += 1)
      fixture.hub.publish(detectionsText({ seq, cameraId: seq % 2 === 0 ? 'dock-1' : 'gate' }))
    const client = await TestClient.connect(fixture.port)
    expect(client.of('hello')[0]?.cursor).toBe('e1-20')
    client.send({ type: 'subscribe', cameras: ['dock-1'], labels: ['person'], resumeAfter: 'e1-5' })
    await client.next('subscribed')
    for (let seq = 21; seq <= 40; seq += 1) fixture.hub.publish(detectionsText({ seq, cameraId: 'dock-1' }))
    await client.next('detections', 28)
    const expected = [6, 8, 10, 12, 14, 16, 18, 20, ...Array.from({ length: 20 }, (_, i) => 21 + i)]
    expect(client.of('detections').map(({ cursor }) => Number(cursor.slice(3)))).toEqual(expected)
    expect(
      client.of('detections').every(({ detections }) => detections.every((d) => d.label === 'person')),
    ).toBe(true)
    expect(client.of('gap')).toEqual([])
  })

  it('tells how much is gone when the cursor is older than what is kept', async () => {
    fixture = await startHub({ resumeMessages: 4 })
    for (let seq = 1; seq <= 10; seq += 1) fixture.hub.publish(detectionsText({ seq }))
    const client = await TestClient.subscribed(fixture.port, { resumeAfter: 'e1-3' })
    await client.next('detections', 4)
    expect(client.of('gap')).toEqual([{ type: 'gap', dropped: 3, reason: 'resume_expired' }])
    expect(client.of('detections').map(({ seq }) => seq)).toEqual([7, 8, 9, 10])
  })

  it('tells a gap of unknown size for a cursor of an earlier run, then sends what is kept', async () => {
    fixture = await startHub()
    fixture.hub.publish(detectionsText({ seq: 1 }))
    const client = await TestClient.subscribed(fixture.port, { resumeAfter: 'before-812' })
    await client.next('detections')
    expect(client.messages.map(({ type }) => type)).toEqual(['hello', 'subscribed', 'gap', 'detections'])
    expect(client.of('gap')[0]).toEqual({ type: 'gap', dropped: 0, reason: 'resume_expired' })
  })
})

describe('clients that do not keep up', () => {
  it('are told by a gap how much they missed, exactly', async () => {
    fixture = await startHub({ sweepMs: 20 })
    const client = await TestClient.subscribed(fixture.port)
    client.socket.pause()
    let published = 0
    while (fixture.counted('dropped') < 5) {
      published += 1
      fixture.hub.publish(bigMessage(published))
    }
    client.socket.resume()
    await client.next('gap')
    const gap = client.of('gap').reduce((sum, { dropped }) => sum + dropped, 0)
    expect(client.of('gap')[0]?.reason).toBe('slow_client')
    expect(client.of('detections').length + gap).toBe(published)
    expect(client.of('detections').map(({ seq }) => seq)).toEqual(
      Array.from({ length: published - gap }, (_, i) => i + 1),
    )
    fixture.hub.publish(detectionsText({ seq: published + 1 }))
    expect((await client.next('detections', published - gap + 1)).seq).toBe(published + 1)
  })

  it('are told of what never came to the hub, and what is replayed goes on behind it', async () => {
    fixture = await startHub()
    const all = await TestClient.subscribed(fixture.port)
    const gate = await TestClient.subscribed(fixture.port, { cameras: ['gate'] })
    fixture.hub.publish(detectionsText({ seq: 1 }))
    fixture.hub.missed('dock-1', 3)
    fixture.hub.missed('gate', 2)
    fixture.hub.publish(detectionsText({ cameraId: 'gate', seq: 2 }))
    await all.next('detections', 2)
    await gate.next('detections')
    expect(all.of('gap')).toEqual([{ type: 'gap', dropped: 5, reason: 'slow_client' }])
    expect(gate.of('gap')).toEqual([{ type: 'gap', dropped: 2, reason: 'slow_client' }])
    expect(all.of('detections').map(({ cursor }) => cursor)).toEqual(['e1-1', 'e1-7'])
    expect(fixture.counted('dropped')).toBe(7)
    const again = await TestClient.subscribed(fixture.port, { resumeAfter: 'e1-1' })
    await again.next('detections')
    expect(again.of('gap')).toEqual([{ type: 'gap', dropped: 5, reason: 'resume_expired' }])
    expect(again.of('detections').map(({ cursor }) => cursor)).toEqual(['e1-7'])
  })

  it('R17: are closed with 1013 after staying slow too long', async () => {
    fixture = await startHub({ sweepMs: 20, slowCloseMs: 300, closeGraceMs: 5_000 })
    const client = await TestClient.subscribed(fixture.port)
    client.socket.pause()
    for (let seq = 1; fixture.counted('dropped') === 0; seq += 1) fixture.hub.publish(bigMessage(seq))
    await until('slow client given up', async () => {
      fixture.hub.publish(detectionsText())
      const dropped = fixture.counted('dropped')
      fixture.hub.publish(detectionsText())
      return fixture.counted('dropped') === dropped
    })
    client.socket.resume()
    expect(await client.whenClosed()).toEqual({ code: 1013, reason: 'too slow' })
  })

  it('are cut off when they do not even take the close', async () => {
    fixture = await startHub({ sweepMs: 20, slowCloseMs: 100, closeGraceMs: 100 })
    const deaf = await deafClient(fixture.port)
    for (let seq = 1; fixture.counted('dropped') === 0; seq += 1) fixture.hub.publish(bigMessage(seq))
    await until('deaf client gone', () => fixture.hub.clients === 0)
    deaf.destroy()
  })
})

describe('half-open connections', () => {
  it('R17: are closed when pings stay unanswered, and live ones are left alone', async () => {
    fixture = await startHub({ sweepMs: 10, pingAfterMs: 100, deadAfterMs: 300 })
    const deaf = await deafClient(fixture.port)
    const client = await TestClient.subscribed(fixture.port)
    let pings = 0
    client.socket.on('ping', () => (pings += 1))
    expect(fixture.hub.clients).toBe(2)
    const atMs = performance.now()
    await until('half-open client gone', () => fixture.hub.clients === 1)
    expect(performance.now() - atMs).toBeLessThan(1_000)
    await until('the live client was pinged over several periods', () => pings >= 5)
    expect(fixture.hub.clients).toBe(1)
    expect(client.closed).toBeUndefined()
    deaf.destroy()
  })
})

describe('stopping', () => {
  it('closes every client with 1001, cuts the deaf, and takes no more', async () => {
    fixture = await startHub({ closeGraceMs: 200 })
    const clients = await Promise.all([1, 2, 3].map(() => TestClient.subscribed(fixture.port)))
    const deaf = await deafClient(fixture.port)
    await fixture.hub.stop()
    expect(fixture.hub.clients).toBe(0)
    for (const client of clients)
      expect(await client.whenClosed()).toEqual({ code: 1001, reason: 'service is stopping' })
    fixture.hub.publish(detectionsText())
    deaf.destroy()
  })

  it('R20: closes clients after the last that was published, also when it is still gathered', async () => {
    fixture = await startHub({ ...alwaysBusy, gatherMs: 10_000, chunkClients: 1 })
    const clients = await Promise.all([1, 2, 3].map(() => TestClient.subscribed(fixture.port)))
    for (const seq of [1, 2]) fixture.hub.publish(detectionsText({ seq }))
    await fixture.hub.stop()
    for (const client of clients) {
      expect((await client.whenClosed()).code).toBe(1001)
      expect(client.of('detections').map(({ seq }) => seq)).toEqual([1, 2])
    }
  })
})

describe('many clients', () => {
  const publishBurst = async (messages: number) => {
    for (let seq = 1; seq <= messages; seq += 1) {
      fixture.hub.publish(detectionsText({ seq }))
      if (seq % 10 === 0) await new Promise(setImmediate)
    }
  }
  const seqsOf = (client: TestClient) => client.of('detections').map(({ seq }) => seq)
  const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i)

  it('are served in chunks, each in order and without a hole, also those who join and leave meanwhile', async () => {
    fixture = await startHub({ chunkClients: 7, maxBacklog: 1_000 })
    const clients = await Promise.all(range(1, 50).map(() => TestClient.subscribed(fixture.port)))
    const stream = publishBurst(200)
    const late = await TestClient.subscribed(fixture.port)
    clients.pop()?.socket.terminate()
    await stream
    fixture.hub.publish(detectionsText({ seq: 201 }))
    for (const client of [...clients, late])
      await until('the last message', () => seqsOf(client).at(-1) === 201)
    for (const client of clients) expect(seqsOf(client)).toEqual(range(1, 201))
    expect(seqsOf(late)).toEqual(range(seqsOf(late)[0] ?? 0, 201))
  })

  it('get all of it in order when it is gathered, too, with a little more to each write than may wait for one', async () => {
    fixture = await startHub({
      ...alwaysBusy,
      chunkClients: 7,
      maxBacklog: 1_000,
      gatherMs: 20,
      gatherBytes: 2_000,
    })
    const clients = await Promise.all(range(1, 30).map(() => TestClient.subscribed(fixture.port)))
    await publishBurst(200)
    for (const client of clients) await until('the last message', () => seqsOf(client).at(-1) === 200)
    for (const client of clients) expect(seqsOf(client)).toEqual(range(1, 200))
    expect(fixture.counted('sent')).toBe(200 * 30)
  })

  it('do not wait for others while the loop has time, also where a crowd did', async () => {
    fixture = await startHub({ gatherMs: 3_600_000 })
    const clients = await Promise.all(range(1, 320).map(() => TestClient.subscribed(fixture.port)))
    fixture.hub.publish(detectionsText({ seq: 1 }))
    for (const client of clients) await until('the message', () => seqsOf(client).at(-1) === 1)
  })

  it('are told what was left out when more is published than can be served', async () => {
    fixture = await startHub({ chunkClients: 5, maxBacklog: 4 })
    const clients = await Promise.all(range(1, 20).map(() => TestClient.subscribed(fixture.port)))
    for (let seq = 1; seq <= 50; seq += 1) fixture.hub.publish(detectionsText({ seq }))
    for (const client of clients) {
      await until('the last message', () => seqsOf(client).at(-1) === 50)
      expect(seqsOf(client)).toEqual([1, 47, 48, 49, 50])
      expect(client.of('gap')).toEqual([{ type: 'gap', dropped: 45, reason: 'slow_client' }])
      const types = client.messages.map(({ type }) => type)
      expect(types.slice(2, 5)).toEqual(['detections', 'gap', 'detections'])
    }
    expect(fixture.counted('dropped')).toBe(45 * 20)
  })
})
