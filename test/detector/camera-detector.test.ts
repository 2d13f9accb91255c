import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { addModel, namesMetadata, detectorOnnx, redDetector, type TestInput } from '../support/onnx-models.js'
import { startDetector } from '../support/detector-rig.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

function repositoryWith(onnx: Uint8Array, config?: string): string {
  const repository = tempDir()
  addModel(repository, 'red', { onnx, ...(config === undefined ? {} : { config }) })
  return repository
}

const red = (input: TestInput = 'uint8-nhwc', batch?: number) => repositoryWith(redDetector(input, batch))
const fragile = fileURLToPath(new URL('../support/fragile-detector-worker.mjs', import.meta.url))

describe('camera detector', () => {
  it.each([
    'uint8-nhwc',
    'uint8-nchw',
    'float32-nchw',
    'float16-nchw',
    'float16-nhwc',
    'float64-nchw',
  ] as const)('sees the red of a %s picture', async (input) => {
    const rig = await startDetector({ repositoryDir: red(input), ensemble: 'red' })
    const outcome = await rig.detect(rig.frame('cam', 1, [204, 20, 30]))
    expect(outcome.kind).toBe('detected')
    const score = expect.closeTo(0.8, input.startsWith('float16') ? 3 : 5) as number
    expect(outcome.result?.detections).toEqual([
      { label: 'red', score, boxPx: { x1: 22, y1: 12, x2: 42, y2: 20 } },
    ])
  })

  it('feeds a YOLOX model with BGR 0..255 and pads at the right and bottom', async () => {
    const onnx = detectorOnnx({
      input: 'float32-nchw',
      widthPx: 64,
      heightPx: 64,
      rows: 84,
      columns: 7,
      // cell 0: offsets 2, 3 cells; e^0 cells wide; objectness 1; class 1 = mean blue / 255
      fixed: { 0: 2, 1: 3, 4: 1 },
      signal: { 6: 255 },
    })
    const rig = await startDetector({ repositoryDir: repositoryWith(onnx), ensemble: 'red' })
    expect(rig.detector.info).toMatchObject({ head: 'yolox', format: { align: 'top-left' } })
    const outcome = await rig.detect(rig.frame('cam', 1, [10, 20, 153]))
    expect(outcome.result?.detections).toEqual([
      {
        label: 'class_1',
        score: expect.closeTo(0.6, 5) as number,
        boxPx: { x1: 12, y1: 20, x2: 20, y2: 28 },
      },
    ])
  })

  it('opens its sessions with the session options of its configuration', async () => {
    const config = 'parameters { key: "session.load_model_format" value { string_value: "ORT" } }'
    const started = startDetector({
      repositoryDir: repositoryWith(redDetector('uint8-nhwc'), config),
      ensemble: 'red',
    })
    // ONNX Runtime takes the file for one of its own format, as it is told.
    await expect(started).rejects.toThrow('ORT model verification failed')
  })

  it('tells what runs', async () => {
    const rig = await startDetector({
      repositoryDir: red(),
      ensemble: 'red',
      inference: { providers: ['cuda', 'cpu'], instances: 2, maxBatchSize: 3 },
    })
    expect(rig.detector.info).toEqual({
      model: { name: 'red', version: '1' },
      detector: { name: 'red', version: '1' },
      labels: ['blue', 'red'],
      format: { input: { widthPx: 64, heightPx: 64 }, align: 'center' },
      inputFrom: 'the model file',
      head: 'yolov8',
      provider: 'cpu',
      providerNotes: [expect.stringContaining('cuda: libonnxruntime_providers_cuda.so is not installed')],
      providerFailures: [],
      instances: 2,
      maxBatchSize: 3,
    })
    const sentences = rig.logLines.map((line) => line.msg)
    expect(sentences).toContain('execution provider is not used')
    expect(rig.logLines).toContainEqual(
      expect.objectContaining({ msg: 'detector is ready', provider: 'cpu', instances: 2 }),
    )
  })

  it('gives every buffer back, as large as it came', async () => {
    const rig = await startDetector({ repositoryDir: red(), ensemble: 'red', inference: { instances: 1 } })
    const bytes = 64 * 64 * 3
    const first = rig.frame('cam', 1)
    const { frame } = await rig.detect(first)
    expect(first.rgbHwc.byteLength).toBe(0)
    expect(frame.rgbHwc.byteLength).toBe(bytes)
    // It can go round again.
    const again = await rig.detect({ ...frame, seq: 2 })
    expect(again.frame.rgbHwc.byteLength).toBe(bytes)
  })

  it('keeps one waiting frame per camera and reports those it superseded', async () => {
    const rig = await startDetector({ repositoryDir: red(), ensemble: 'red', inference: { instances: 1 } })
    for (let seq = 1; seq <= 20; seq++)
      for (const camera of ['a', 'b', 'c']) rig.detector.offer(rig.frame(camera, seq))
    await rig.ended(60)
    for (const camera of ['a', 'b', 'c']) {
      const ended = rig.outcomes.filter((outcome) => outcome.cameraId === camera)
      expect(ended.map((outcome) => outcome.seq).sort((a, b) => a - b)).toEqual(
        Array.from({ length: 20 }, (_, i) => i + 1),
      )
      const detected = ended.filter((outcome) => outcome.kind === 'detected').map((outcome) => outcome.seq)
      expect(detected.at(-1)).toBe(20)
      expect(detected).toEqual([...detected].sort((a, b) => a - b))
    }
  })

  it('reports the frames of a camera in order though two instances work on them', async () => {
    const rig = await startDetector({ repositoryDir: red(), ensemble: 'red', inference: { instances: 2 } })
    let seq = 0
    const offers = setInterval(() => rig.detector.offer(rig.frame('cam', ++seq)), 1)
    await rig.ended(200)
    clearInterval(offers)
    const detected = rig.outcomes
      .filter((outcome) => outcome.kind === 'detected')
      .map((outcome) => outcome.seq)
    expect(detected.length).toBeGreaterThan(20)
    expect(detected).toEqual([...detected].sort((a, b) => a - b))
  })

  it('runs frames of several cameras in one batch, each with its own result', async () => {
    const rig = await startDetector({
      repositoryDir: red('float32-nchw'),
      ensemble: 'red',
      inference: { instances: 1, maxBatchSize: 4, maxQueueDelayMs: 500 },
    })
    // One frame per camera makes the cameras known; from then on a batch of four waits for nobody else.
    for (const camera of ['a', 'b', 'c', 'd']) rig.detector.offer(rig.frame(camera, 1))
    await rig.ended(4)
    const reds = { a: 255, b: 204, c: 153, d: 102 }
    for (const [camera, value] of Object.entries(reds))
      rig.detector.offer(rig.frame(camera, 2, [value, 0, 0]))
    await rig.ended(8)
    const second = rig.outcomes.filter((outcome) => outcome.seq === 2)
    expect(second.map((outcome) => outcome.result?.batchSize)).toEqual([4, 4, 4, 4])
    for (const [camera, value] of Object.entries(reds)) {
      const score = second.find((outcome) => outcome.cameraId === camera)?.result?.detections[0]?.score
      expect(score).toBeCloseTo(value / 255, 5)
    }
  })

  it('never makes a batch for a model that takes none', async () => {
    const rig = await startDetector({
      repositoryDir: red('uint8-nhwc', 1),
      ensemble: 'red',
      inference: { instances: 1, maxBatchSize: 8 },
    })
    expect(rig.detector.info.maxBatchSize).toBe(1)
  })

  it('measures each stage', async () => {
    const rig = await startDetector({ repositoryDir: red(), ensemble: 'red', inference: { instances: 1 } })
    const { result } = await rig.detect(rig.frame('cam', 1))
    for (const ms of Object.values(result?.timingsMs ?? { none: Number.NaN })) {
      expect(ms).toBeGreaterThanOrEqual(0)
      expect(ms).toBeLessThan(5_000)
    }
  })

  it('sheds a frame of another size, saying which', async () => {
    const rig = await startDetector({ repositoryDir: red(), ensemble: 'red', inference: { instances: 1 } })
    const frame = { ...rig.frame('cam', 1), rgbHwc: new ArrayBuffer(12) }
    await expect(rig.detect(frame)).resolves.toMatchObject({
      kind: 'shed',
      cause: 'inference_failed',
      error: { code: 'GANTRY_TENSOR_SHAPE' },
    })
  })

  it('sheds the waiting frame of a removed camera', async () => {
    const rig = await startDetector({ repositoryDir: red(), ensemble: 'red', inference: { instances: 1 } })
    rig.detector.offer(rig.frame('a', 1))
    rig.detector.offer(rig.frame('b', 1))
    rig.detector.removeCamera('b')
    expect(rig.outcomes).toEqual([
      expect.objectContaining({ kind: 'shed', cause: 'stopping', cameraId: 'b' }),
    ])
    await rig.ended(2)
  })

  it('finishes what runs when it stops, and sheds what waits and what comes later', async () => {
    const rig = await startDetector({ repositoryDir: red(), ensemble: 'red', inference: { instances: 1 } })
    rig.detector.offer(rig.frame('a', 1))
    rig.detector.offer(rig.frame('b', 1))
    const stopped = rig.detector.stop(5_000)
    rig.detector.offer(rig.frame('c', 1))
    await stopped
    await rig.detector.stop(5_000)
    const by = Object.fromEntries(
      rig.outcomes.map((outcome) => [outcome.cameraId, outcome.cause ?? outcome.kind]),
    )
    expect(by).toEqual({ a: 'detected', b: 'stopping', c: 'stopping' })
    expect(rig.exits).toEqual([])
  })

  it('sheds the frame whose worker ended, goes on with the others, and starts a new instance', async () => {
    const rig = await startDetector({
      repositoryDir: red(),
      ensemble: 'red',
      inference: { instances: 1 },
      workerEntry: fragile,
    })
    const deadly = rig.detect(rig.frame('bad', 1, [201, 0, 0]))
    rig.detector.offer(rig.frame('good', 1, [255, 0, 0]))
    await expect(deadly).resolves.toMatchObject({
      kind: 'shed',
      cause: 'inference_failed',
      error: { code: 'GANTRY_WORKER_EXITED' },
    })
    await until('the other camera goes on', () =>
      rig.outcomes.some((outcome) => outcome.cameraId === 'good' && outcome.kind === 'detected'),
    )
    expect(rig.exits).toHaveLength(1)
    expect(rig.outcomes).toHaveLength(2)
  })

  it('tells of a run that does not end', async () => {
    const rig = await startDetector({
      repositoryDir: red(),
      ensemble: 'red',
      inference: { instances: 2, runTimeoutMs: 300 },
      workerEntry: fragile,
    })
    rig.detector.offer(rig.frame('bad', 1, [202, 0, 0]))
    await expect(rig.detect(rig.frame('good', 1, [255, 0, 0]))).resolves.toMatchObject({ kind: 'detected' })
    await until('the watchdog', () => rig.hangs.length > 0)
    expect(rig.hangs).toEqual([
      expect.objectContaining({
        code: 'GANTRY_INFERENCE_FAILED',
        message: expect.stringContaining('#') as string,
      }),
    ])
  })

  describe('with model_warmup', () => {
    const warmUp = (input: string, more = '') =>
      repositoryWith(
        redDetector('uint8-nhwc'),
        `max_batch_size: 4
        model_warmup { name: "w" ${more} inputs { key: "images" value { data_type: TYPE_UINT8 dims: [ 64, 64, 3 ] ${input} } } }`,
      )

    it('runs it in each instance before the first frame, batches cut to those of frames', async () => {
      const repositoryDir = warmUp('random_data: true', 'batch_size: 4 count: 3')
      const rig = await startDetector({
        repositoryDir,
        ensemble: 'red',
        inference: { instances: 2, maxBatchSize: 2 },
      })
      await expect(rig.detect(rig.frame('cam', 1, [204, 20, 30]))).resolves.toMatchObject({
        kind: 'detected',
      })
      expect(JSON.stringify(rig.logLines)).not.toContain('model_warmup')
    })

    it('takes its data from files, and names one that is not there', async () => {
      const repositoryDir = warmUp('input_data_file: "gone"')
      await expect(startDetector({ repositoryDir, ensemble: 'red' })).rejects.toMatchObject({
        code: 'GANTRY_MODEL_CONFIG',
        message: expect.stringContaining('model_warmup "w", input "images": there is no file') as string,
      })
    })

    it('does not start with one that the model cannot run', async () => {
      const config = `max_batch_size: 4
        model_warmup { name: "w" inputs { key: "images" value { data_type: TYPE_UINT8 dims: [ 32, 32, 3 ] random_data: true } } }`
      await expect(
        startDetector({ repositoryDir: repositoryWith(redDetector('uint8-nhwc'), config), ensemble: 'red' }),
      ).rejects.toMatchObject({
        code: 'GANTRY_MODEL_CONFIG',
        message: expect.stringContaining('model_warmup failed') as string,
      })
    })
  })

  it('counts frames as requests of its model, under the labels of its configuration', async () => {
    const repositoryDir = repositoryWith(redDetector('uint8-nhwc'), 'metric_tags { key: "site" value: "a" }')
    const rig = await startDetector({ repositoryDir, ensemble: 'red', workerEntry: fragile })
    await rig.detect(rig.frame('cam', 1, [204, 20, 30]))
    await rig.detect(rig.frame('cam', 2, [201, 0, 0]))
    const [counted] = rig.detector.statistics()
    expect(counted).toMatchObject({
      model: 'red',
      version: '1',
      metricTags: { site: 'a' },
      executionCount: 1,
      failures: { BACKEND: 1 },
    })
    expect(counted?.inference.compute_infer.ns).toBeGreaterThan(0)
    expect(counted?.inference.success.ns).toBeGreaterThanOrEqual(counted?.inference.compute_infer.ns ?? 0)
  })

  it('refuses a model that does not keep to its declared output', async () => {
    const onnx = detectorOnnx({
      input: 'uint8-nhwc',
      widthPx: 64,
      heightPx: 64,
      rows: 6,
      columns: 84,
      metadata: namesMetadata(['a', 'b']),
      outputShape: ['N', 'rows', 'columns'],
    })
    const config = `max_batch_size: 4
      input { name: "images" data_type: TYPE_UINT8 dims: [ 64, 64, 3 ] }
      output { name: "output0" data_type: TYPE_FP32 dims: [ 84, 7 ] }`
    const repositoryDir = repositoryWith(onnx, config)
    await expect(startDetector({ repositoryDir, ensemble: 'red' })).rejects.toMatchObject({
      code: 'GANTRY_TENSOR_SHAPE',
      message: expect.stringContaining('output "output0" has shape [1, 6, 84], which a yolox head') as string,
    })
  })

  it('says that a file ONNX Runtime cannot load is no usable model', async () => {
    const onnx = redDetector('uint8-nhwc')
    const broken = Buffer.from(onnx)
    broken.write('Xnknown', broken.lastIndexOf('Unsqueeze'))
    await expect(
      startDetector({ repositoryDir: repositoryWith(broken), ensemble: 'red' }),
    ).rejects.toMatchObject({
      code: 'GANTRY_MODEL_INVALID',
      message: expect.stringContaining('ONNX Runtime cannot load') as string,
    })
  })
})
