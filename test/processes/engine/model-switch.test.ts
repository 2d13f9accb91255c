import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { cameraSchema } from '../../../src/config/camera.js'
import { toBase64 } from '../../../src/lifecycle/base64.js'
import { closedDetectionsJson } from '../../../src/messages/detections-json.js'
import { detectionsMessageSchema } from '../../../src/messages/detections-message.js'
import type { Engine } from '../../../src/processes/engine/engine.js'
import { emptyFrameCounts } from '../../../src/vision/accounting.js'
import { fixedDetector, type FixedDetectorSpec } from '../../support/changing-models.js'
import { rtspCameras } from '../../support/demo-cameras.js'
import { engineRig } from '../../support/engine-rig.js'
import { addModel } from '../../support/onnx-models.js'
import { redPicture } from '../../support/red-pictures.js'
import { tempDir } from '../../support/temp-dir.js'
import { until } from '../../support/until.js'
import { makeClip } from '../../support/video-clips.js'

const loopbackClosed = { analysed: false, main: false }

/** An engine with the model `old`; others are added to its repository. */
async function started(models: Readonly<Record<string, FixedDetectorSpec>>) {
  const repository = tempDir()
  for (const [name, spec] of Object.entries({ old: {}, ...models }))
    addModel(repository, name, { onnx: fixedDetector(spec) })
  const rig = engineRig([repository], 'old')
  onTestFinished(() => rig.engine.stop(1_000))
  await rig.engine.start()
  return {
    ...rig,
    open: (ensemble: string) =>
      rig.engine.answer({ type: 'openEnsemble', ensemble, repositories: [repository] }),
    use: (tried: boolean) => rig.engine.answer({ type: 'useEnsemble', tried }),
    settle: (keeps: boolean) => rig.engine.answer({ type: 'settleEnsemble', keeps }),
    seen: () =>
      rig.results.map(({ seq, model, text }) => {
        const { detections } = detectionsMessageSchema.parse(
          JSON.parse(closedDetectionsJson(Buffer.from(text), 1).toString()),
        )
        return { seq, model, boxes: detections.map(({ boxPx }) => [boxPx.x1, boxPx.y1]) }
      }),
  }
}

async function pushTo(engine: Engine, more: object = {}) {
  const camera = cameraSchema.parse({ id: 'door', url: 'push:', ...more })
  await engine.setCamera({ camera, firstSeq: 1, loopbackClosed })
  const image = toBase64(await redPicture({ widthPx: 320, heightPx: 320 }, 200))
  return () => until('a push', () => engine.answer({ type: 'pushFrame', cameraId: 'door', image }), 10_000, 5)
}

/** A way to a server that carries one connection; others are refused while it is open, or never answered. */
async function oneAtATime(targetPort: number, others: 'refused' | 'unanswered' = 'refused') {
  let open = 0
  let refused = 0
  const server = createServer((near) => {
    near.on('error', () => near.destroy())
    if (open > 0) {
      refused += 1
      if (others === 'refused') near.resetAndDestroy()
      return
    }
    open += 1
    const far = connect(targetPort, '127.0.0.1')
    far.on('error', () => near.destroy())
    near.once('close', () => {
      open -= 1
      far.destroy()
    })
    far.once('close', () => near.destroy())
    near.pipe(far).pipe(near)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { port: (server.address() as AddressInfo).port, refused: () => refused }
}

describe.each([
  ['the same size', 64],
  ['another size', 128],
])('an ensemble of %s', (_, sidePx) => {
  it('takes over from the next picture on, and gives back the same way', async () => {
    const { engine, open, use, settle, seen, messages } = await started({ new: { sidePx, at: 0.6 } })
    const push = await pushTo(engine)
    await push()
    expect(await open('new')).toMatchObject({
      model: { name: 'new' },
      format: { input: { widthPx: sidePx } },
    })
    await push()
    expect(await use(true)).toMatchObject({ model: { name: 'new' } })
    await push()
    await push()
    expect(await use(false)).toMatchObject({ model: { name: 'old' } })
    await push()
    expect(await settle(false)).toMatchObject({ model: { name: 'old' } })
    await push()
    await until('results', () => seen().length === 6)
    expect(seen().map(({ seq, model }) => [seq, model])).toEqual([
      [1, 'old'],
      [2, 'old'],
      [3, 'new'],
      [4, 'new'],
      [5, 'old'],
      [6, 'old'],
    ])
    // The box is where its own model sees it, in pixels of the picture.
    expect(seen()[1]!.boxes).toEqual([[112, 128]])
    expect(seen()[3]!.boxes).toEqual([[144, 128]])
    await engine.removeCamera('door')
    expect(messages.at(-1)).toEqual({
      type: 'removed',
      cameraId: 'door',
      counts: { ...emptyFrameCounts(), received: 6, inferred: 6 },
    })
  })

  it('is kept, and cameras that come later get it', async () => {
    const { engine, open, use, settle, seen } = await started({ new: { sidePx } })
    await open('new')
    await use(true)
    expect(await settle(true)).toMatchObject({ model: { name: 'new' } })
    const push = await pushTo(engine)
    await push()
    await until('a result', () => seen().length === 1)
    expect(seen()).toMatchObject([{ seq: 1, model: 'new', boxes: [[112, 128]] }])
    // A second change begins from here.
    await open('old')
    await use(true)
    await push()
    await until('a result', () => seen().length === 2)
    expect(seen()[1]).toMatchObject({ seq: 2, model: 'old' })
  })

  it('is compared on copies of frames, which nobody is told of', async () => {
    const { engine, open, seen } = await started({ new: { sidePx }, other: { sidePx, at: 0.2 } })
    const push = await pushTo(engine)
    for (const [name, matched] of [
      ['new', 1],
      ['other', 0],
    ] as const) {
      await open(name)
      const compared = engine.answer({ type: 'compareEnsembles', frames: 1, forMs: 20_000 })
      await push()
      expect(await compared).toEqual({ frames: 1, before: 1, after: 1, matched, failure: '' })
      await engine.answer({ type: 'settleEnsemble', keeps: false })
    }
    await until('results', () => seen().length === 2)
    expect(seen().map(({ model }) => model)).toEqual(['old', 'old'])
  })

  it('lets a snapshot be taken of the picture before, and a still scene be analysed anew', async () => {
    const { engine, open, use, seen } = await started({ new: { sidePx } })
    const push = await pushTo(engine, { staticScene: { maxAgeMs: 60_000 } })
    await push()
    await until('a result', () => seen().length === 1)
    await push()
    await open('new')
    await use(true)
    await engine.answer({ type: 'snapshot', cameraId: 'door', overlay: true, own: false })
    await push()
    await until('a result', () => seen().length === 3)
    await push()
    await until('results', () => seen().length === 4)
    expect(seen().map(({ model }) => model)).toEqual(['old', 'old', 'new', 'new'])
  })
})

it('tells no result of the new one before the last of the one before, however long that takes', async () => {
  const { engine, open, use, settle, seen, messages } = await started({ old: { products: 6 }, new: {} })
  const push = await pushTo(engine)
  await open('new')
  await push()
  await push()
  await use(true)
  await push()
  await until('results', () => seen().length === 3, 20_000)
  expect(seen().map(({ seq, model }) => [seq, model])).toEqual([
    [1, 'old'],
    [2, 'old'],
    [3, 'new'],
  ])
  // One that is let go ends what it has.
  await use(false)
  await push()
  await use(true)
  await settle(true)
  expect(seen().at(-1)).toMatchObject({ seq: 4, model: 'old' })
  await engine.removeCamera('door')
  expect(messages.at(-1)).toMatchObject({ counts: { received: 4, inferred: 4 } })
}, 60_000)

it('opens a camera in the other size beside the one that works, which gives frames until the first of the other', async () => {
  const folder = tempDir()
  const clip = await makeClip(`${folder}/clip.mp4`, { seconds: 20 })
  const { engine, open, use, settle, seen, messages } = await started({ new: { sidePx: 128 } })
  const camera = cameraSchema.parse({ id: 'clip', url: clip, sampleFps: 10 })
  await engine.setCamera({ camera, firstSeq: 1, loopbackClosed })
  await until('a result', () => seen().length > 2)
  await open('new')
  await use(true)
  await until('results of it', () => seen().at(-1)?.model === 'new')
  await settle(true)
  await engine.removeCamera('clip')
  const models = seen().map(({ model }) => model)
  const first = models.indexOf('new')
  expect(models).toEqual(models.map((__, index) => (index < first ? 'old' : 'new')))
  const seqs = seen().map(({ seq }) => seq)
  expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b))
  const states = messages.flatMap((message) => (message.type === 'status' ? [message.status.state] : []))
  expect(new Set(states.slice(states.indexOf('live')))).toEqual(new Set(['live']))
  const last = messages.at(-1)
  if (last?.type !== 'removed') throw new Error('the camera was not let go')
  expect(last.counts).toMatchObject({ lost: 0, shed: { stopping: 0, inference_failed: 0 } })
  expect(last.counts.received).toBe(last.counts.inferred + last.counts.superseded)
}, 60_000)

it('lets a camera go first that serves one connection at a time', async () => {
  const rtsp = await rtspCameras(1, await makeClip(`${tempDir()}/clip.mp4`, { seconds: 4 }))
  onTestFinished(() => rtsp.stop())
  const gate = await oneAtATime(Number(new URL(rtsp.url('/cam1')).port))
  const { engine, open, use, seen, messages } = await started({ new: { sidePx: 128 } })
  const url = rtsp.url('/cam1').replace(/:\d+/, `:${gate.port}`)
  const camera = cameraSchema.parse({ id: 'gate', url, sampleFps: 10 })
  await engine.setCamera({ camera, firstSeq: 1, loopbackClosed })
  await until('a result', () => seen().length > 2)
  await open('new')
  await use(true)
  await until('results of it', () => seen().at(-1)?.model === 'new', 20_000)
  expect(gate.refused()).toBeGreaterThan(0)
  await engine.removeCamera('gate')
  const seqs = seen().map(({ seq }) => seq)
  expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b))
  const last = messages.at(-1)
  if (last?.type !== 'removed') throw new Error('the camera was not let go')
  expect(last.counts.received).toBe(last.counts.inferred + last.counts.superseded)
}, 60_000)

it('ends while it waits for a second source of a camera', async () => {
  const rtsp = await rtspCameras(1, await makeClip(`${tempDir()}/clip.mp4`, { seconds: 4 }))
  onTestFinished(() => rtsp.stop())
  const gate = await oneAtATime(Number(new URL(rtsp.url('/cam1')).port), 'unanswered')
  const { engine, open, use, seen } = await started({ new: { sidePx: 128 } })
  const url = rtsp.url('/cam1').replace(/:\d+/, `:${gate.port}`)
  const camera = cameraSchema.parse({ id: 'gate', url, sampleFps: 10 })
  await engine.setCamera({ camera, firstSeq: 1, loopbackClosed })
  await until('a result', () => seen().length > 2)
  await open('new')
  const going = use(true)
  await until('a second source', () => gate.refused() > 0)
  await engine.stop(1_000)
  await going
  expect(new Set(seen().map(({ model }) => model))).toEqual(new Set(['old']))
}, 60_000)

it('tells why an ensemble cannot be opened, and goes on with the one that works', async () => {
  const { engine, open, settle, seen } = await started({ broken: { isUnknown: true } })
  const push = await pushTo(engine)
  await expect(open('none')).rejects.toMatchObject({ code: 'GANTRY_MODEL_NOT_FOUND' })
  await expect(open('broken')).rejects.toThrow(/NoSuchStep/)
  expect(await settle(false)).toMatchObject({ model: { name: 'old' } })
  await push()
  await until('a result', () => seen()[0]?.model === 'old')
})

it('ends while a comparison runs, without waiting for it, and then takes no other ensemble', async () => {
  const { engine, open, seen } = await started({ new: {} })
  const push = await pushTo(engine)
  await open('new')
  const compared = engine.answer({ type: 'compareEnsembles', frames: 2, forMs: 600_000 })
  await push()
  await until('a result', () => seen().length === 1)
  await engine.stop(1_000)
  expect(await compared).toMatchObject({ failure: '' })
  await expect(open('new')).rejects.toMatchObject({ code: 'GANTRY_ENGINE_UNAVAILABLE' })
})
