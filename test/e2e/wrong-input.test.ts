import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Problem } from '../../src/api/problem.js'
import { freePort } from '../support/free-port.js'
import { ask, type Ask } from '../support/http.js'
import { buildOnnx, type TensorSpec } from '../support/onnx-builder.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { pictureBomb } from '../support/picture-bomb.js'
import { runOnPipeline } from '../support/pipeline-command.js'
import { TestService } from '../support/service.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

// A taken port, a missing model and an unknown key are in wrong-start.test.ts.

type Finding = Readonly<{ subject: string; state: string; detail: string; fix?: string }>

/** Runs a command whose answer is JSON. */
function gantry(command: string, dir: string, pipeline: Record<string, unknown>, ...flags: string[]) {
  return runOnPipeline(dir, pipeline, [command, '--json', ...flags])
}

/** What `gantry check` finds wrong. */
function wrongIn(dir: string, pipeline: Record<string, unknown>, ...flags: string[]) {
  const { status, stdout } = gantry('check', dir, pipeline, ...flags)
  const { findings } = JSON.parse(stdout) as { findings: Finding[] }
  return { status, wrong: findings.filter(({ state }) => state === 'failed') }
}

/** The error a command ended with: its last line. A service may have logged what it had started by then. */
function errorIn(stderr: string): Record<'code' | 'message' | 'hint', string> {
  const last = stderr.trim().split('\n').at(-1) ?? ''
  return (JSON.parse(last) as { error: Record<'code' | 'message' | 'hint', string> }).error
}

describe('a setting', () => {
  it.each([
    [
      'an id that two cameras have',
      { cameras: ['gate', 'gate'].map((id) => ({ id, url: 'push:' })) },
      'cameras[1].id: camera id "gate" is already used by cameras[0]; ids must differ',
    ],
    [
      'a text for a number',
      { cameras: [{ id: 'gate', url: 'push:', sampleFps: 'fast' }] },
      'cameras[0].sampleFps: must be a number, not a text',
    ],
    ['a number for a list', { cameras: 3 }, 'cameras: must be a list, not the number 3'],
    ['a text for a section', { sinks: 'kafka' }, 'sinks: must be a section of settings, not a text'],
  ])('is refused with its line and its key: %s', (_, pipeline, problem) => {
    const { file, status, stdout, stderr } = gantry('check', tempDir(), pipeline)
    expect([status, stdout]).toEqual([2, ''])
    const { code, message, hint } = errorIn(stderr)
    expect(code).toBe('GANTRY_CONFIG')
    expect(message.replace(/:\d+:\d+: /, ':LINE:COLUMN: ')).toBe(`${file}:LINE:COLUMN: ${problem}`)
    expect(hint).toContain('docs/configuration.md')
  })
})

describe('a camera that cannot be reached', () => {
  it.each([
    [
      'nobody listens',
      (port: number) => `rtsp://127.0.0.1:${port}/x`,
      'connection refused: check host and port, and that the camera is on',
      'see docs/runbooks/camera-not-live.md',
    ],
    ['no such file', () => 'gone.mp4', 'camera URL "gone.mp4" does not exist', 'gone.mp4; correct the path'],
  ])('is named with the reason and what to do: %s', async (_, url, reason, fix) => {
    const cameras = [{ id: 'gate', url: url(await freePort()) }]
    const { status, wrong } = wrongIn(tempDir(), { cameras }, '--probe')
    expect([status, wrong.length]).toEqual([2, 1])
    expect(wrong[0]).toMatchObject({ subject: 'camera gate', detail: reason })
    expect(wrong[0]?.fix).toContain(fix)
  })
})

const output: TensorSpec = { name: 'output0', type: 'float32', shape: ['N', 6, 84] }
const picture: TensorSpec = { name: 'images', type: 'uint8', shape: ['N', 64, 64, 3] }
const taking = (...inputs: TensorSpec[]) => ({ onnx: buildOnnx({ inputs, outputs: [output], nodes: [] }) })
const configured = (name: string, type: string, dims: string) => ({
  onnx: redDetector('uint8-nhwc'),
  config: `max_batch_size: 8 input { name: "${name}" data_type: ${type} dims: [ ${dims} ] }`,
})

describe('a model', () => {
  it.each([
    [
      'no picture goes in',
      taking({ ...picture, shape: ['N', 10] }),
      'GANTRY_MODEL_INVALID',
      'model "odd": input "images" uint8 [N, 10] is not an image',
      'Export the model with an input of one of these forms',
    ],
    [
      'two pictures go in',
      taking(picture, { ...picture, name: 'depth' }),
      'GANTRY_MODEL_INVALID',
      'model "odd" has 2 inputs: "images" uint8 [N, 64, 64, 3], "depth" uint8 [N, 64, 64, 3]',
      'Export the detector with one image input',
    ],
    [
      'a picture of any size goes in',
      taking({ ...picture, shape: ['N', 'h', 'w', 3] }),
      'GANTRY_MODEL_INVALID',
      'input "images" uint8 [N, h, w, 3] does not tell the size of its picture',
      'gantry.input_size',
    ],
    [
      'its configuration names another input',
      configured('pixels', 'TYPE_UINT8', '64, 64, 3'),
      'GANTRY_MODEL_INVALID',
      'odd/config.pbtxt: the model has no input "pixels"',
      'Its inputs are: "images" uint8 [batch, 64, 64, 3]',
    ],
    [
      'its configuration has another type of input',
      configured('images', 'TYPE_FP32', '64, 64, 3'),
      'GANTRY_MODEL_INVALID',
      'odd/config.pbtxt: input "images" is uint8 [batch, 64, 64, 3] in the model, but TYPE_FP32 [-1, 64, 64, 3] is expected',
      'Correct data_type and dims in config.pbtxt',
    ],
    [
      'its configuration repeats the batch',
      configured('images', 'TYPE_UINT8', '8, 64, 64, 3'),
      'GANTRY_MODEL_INVALID',
      'odd/config.pbtxt: input "images" is uint8 [batch, 64, 64, 3] in the model',
      'dims leave it out',
    ],
    [
      'more labels than classes',
      { onnx: redDetector('uint8-nhwc'), labels: 'helmet\nhead\nperson\n' },
      'GANTRY_MODEL_LABELS',
      'model "odd": labels.txt has 3 labels, but output "output0" has 2 classes',
      'List one label per class',
    ],
    [
      'a gap in its labels',
      { onnx: redDetector('uint8-nhwc'), labels: 'helmet\n\nhead\n' },
      'GANTRY_MODEL_LABELS',
      'odd/labels.txt:2: empty line',
      'Write one label on each line',
    ],
  ])('is refused by check and by serve: %s', (_, files, code, place, fix) => {
    const dir = tempDir()
    const repository = join(dir, 'models')
    mkdirSync(repository)
    addModel(repository, 'odd', files)
    const pipeline = { models: { repository }, ensemble: 'odd', cameras: [{ id: 'gate', url: 'push:' }] }

    const { status, wrong } = wrongIn(dir, pipeline, '--offline')
    expect(status).toBe(2)
    // What makes it useless for API clients as well is told of both.
    expect(['model odd', 'served model odd', 'served models']).toEqual(
      expect.arrayContaining(wrong.map(({ subject }) => subject)),
    )
    const found = wrong.find(({ subject }) => subject === 'model odd')
    expect(found?.detail).toContain(place)
    expect(found?.fix).toContain(fix)

    const started = gantry('serve', dir, pipeline)
    expect(started.status).toBe(2)
    const error = errorIn(started.stderr)
    expect(error.code).toBe(code)
    expect(error.message).toContain(place)
    expect(error.hint).toContain(fix)
  })
})

const maxBodyBytes = 500_000
const frames = '/api/v1/cameras/gate/frames'

describe('the running service', () => {
  let service: TestService
  let jpeg: Buffer

  beforeAll(async () => {
    jpeg = await sharp({ create: { width: 64, height: 64, channels: 3, background: 'grey' } })
      .jpeg()
      .toBuffer()
    const cameras = [
      { id: 'gate', url: 'push:' },
      { id: 'gone', url: `rtsp://127.0.0.1:${await freePort()}/x` },
    ]
    service = await TestService.start({
      pipeline: { cameras },
      env: { GANTRY__SERVER__MAX_BODY_BYTES: String(maxBodyBytes) },
    })
    await until('a picture taken', async () => (await push(jpeg)).status === 202)
  })
  afterAll(async () => service?.[Symbol.asyncDispose]())

  function push(body: Uint8Array, type = 'image/jpeg') {
    return post(frames, { body, headers: { 'content-type': type } })
  }

  function post(path: string, given: Ask) {
    return ask(service.url + path, { method: 'POST', ...given })
  }

  it('names the camera that cannot be reached, and why', async () => {
    const { status } = await service.cameraIs('gone', 'backoff')
    expect(status.reason).toMatch(/connection refused: check host and port, and that the camera is on/)
  })

  it.each([
    [
      'an image bomb',
      413,
      'GANTRY_TOO_LARGE',
      'picture is too large: 20000 x 20000 pixels',
      'Scale the picture down to at most 8192 x 8192 pixels',
      () => push(pictureBomb(20_000, 20_000), 'image/png'),
    ],
    [
      'an upload past the limit',
      413,
      'GANTRY_TOO_LARGE',
      `the body is larger than the ${maxBodyBytes} bytes`,
      'raise server.maxBodyBytes',
      () => push(Buffer.concat([jpeg, Buffer.alloc(maxBodyBytes)])),
    ],
    [
      'settings of a camera past the limit',
      413,
      'GANTRY_TOO_LARGE',
      'the body is larger than the 262144 bytes',
      'Send a smaller body',
      () => post('/api/v1/cameras', { body: { id: 'a', url: 'x'.repeat(300_000) } }),
    ],
    [
      'an id that a camera has',
      409,
      'GANTRY_CAMERA_EXISTS',
      'camera "gate" exists already',
      'Choose another id',
      () => post('/api/v1/cameras', { body: { id: 'gate', url: 'push:' } }),
    ],
  ])('refuses %s and takes the next picture', async (_, status, code, place, fix, send) => {
    const reply = await send()
    const problem = reply.json as Problem
    expect([reply.status, problem.code]).toEqual([status, code])
    expect(problem.detail).toContain(place)
    expect(problem.hint).toContain(fix)
    expect((await push(jpeg)).status).toBe(202)
  })

  it.each([
    ['what is no JSON', '{', 'the message is not JSON'],
    ['an unknown key', '{"type":"subscribe","camera":"gate"}', 'camera: unknown key'],
    [
      'a text for a number',
      '{"type":"subscribe","minScore":"high"}',
      'minScore: must be a number, not a text',
    ],
  ])('answers a message with its mistake and keeps the connection: %s', async (_, text, place) => {
    const stream = await service.stream()
    const told = stream.next(({ type }) => type === 'error')
    stream.socket.send(text)
    const error = await told
    expect(error).toMatchObject({ type: 'error', code: 'GANTRY_WS_MESSAGE' })
    expect(error).toMatchObject({
      message: expect.stringContaining(place) as unknown,
      hint: expect.stringContaining('{"type":"subscribe","cameras":["*"]}') as unknown,
    })
    const again = stream.next(({ type }) => type === 'subscribed')
    stream.socket.send('{"type":"subscribe"}')
    await again
    stream.close()
  })

  it.each([
    ['says nothing but nonsense', Array<string>(5).fill('nonsense'), 1008, 'too many bad messages'],
    ['sends more than 64 KiB at once', ['x'.repeat(65 * 1024)], 1009, ''],
  ])('closes a client that %s', async (_, texts, code, reason) => {
    const stream = await service.stream()
    const closed = once(stream.socket, 'close') as Promise<[number, Buffer]>
    for (const text of texts) stream.socket.send(text)
    const [closedWith, why] = await closed
    expect([closedWith, why.toString()]).toEqual([code, reason])
  })
})
