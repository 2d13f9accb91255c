import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { TestService, type TestStream } from '../../support/service.js'
import { until } from '../../support/until.js'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const part = (file: string) => fileURLToPath(new URL(file, import.meta.url))

/** Frames per second of the demo clips. */
export const nativeFps = 25
/** The loop opens one stream after the other, a second each. */
const openedWithinMs = 120_000

/** A detector of `numbered_models.py`, with the scaled width of a picture of 1280 x 720 in its input. */
export const models = {
  ppe: { widthPx: 800, heightPx: 448, scaledPx: 1280 * (448 / 720) },
  tiny: { widthPx: 320, heightPx: 192, scaledPx: 320 },
} as const
export type ModelName = keyof typeof models

/** A result as it arrived in this process. */
export type Result = Readonly<{
  /** From 0. */
  camera: number
  /** Number of the picture in its clip; undefined when no box tells it. */
  picture: number | undefined
  /** By the clock of the machine, as the log of the cameras. */
  atMs: number
  boxes: number
}>

/** What analyses the cameras. */
export interface Side {
  readonly name: string
  readonly results: Result[]
  /** Root of all its processes. */
  readonly pid: number
  /** Takes up the cameras, and waits for a result of each. */
  on(): Promise<void>
  off(): Promise<void>
  stop(): Promise<void>
}

/** The picture that a box tells. @param xShare - middle of the box, as a share of the picture's width; `yShare` of the width too. */
function pictureOf(model: ModelName, xShare: number, yShare: number): number {
  const { scaledPx } = models[model]
  return Math.round((xShare * scaledPx - 8) / 4) + 64 * Math.round((yShare * scaledPx - 8) / 4)
}

/** Whether a box is the one that tells the number: 2 px of the model's input, which no vehicle is. */
const tells = (score: number, widthPx: number) => score > 0.99 && widthPx < 12

async function resultOfEach(side: Side, cameras: number): Promise<void> {
  const from = side.results.length
  await until(
    `results of ${cameras} cameras by ${side.name}`,
    () => new Set(side.results.slice(from).map(({ camera }) => camera)).size === cameras,
    openedWithinMs,
  )
}

/** The service stays up between its turns, its cameras switched off. */
export class GantrySide implements Side {
  readonly name = 'gantry'
  readonly results: Result[] = []
  #stream: TestStream | undefined

  private constructor(
    readonly service: TestService,
    readonly cameras: number,
  ) {}

  static async start(
    repository: string,
    model: ModelName,
    urls: readonly string[],
    sampleFps: number,
    camera: Readonly<Record<string, unknown>> = {},
  ): Promise<GantrySide> {
    const service = await TestService.start({
      pipeline: {
        models: { repository },
        // As users have it: with the model server, which nobody asks.
        modelServer: {},
        ensemble: model,
        log: { level: 'error' },
        cameras: urls.map((url, id) => ({ ...camera, id: `cam-${id}`, url, sampleFps, enabled: false })),
      },
    })
    const side = new GantrySide(service, urls.length)
    side.#stream = await service.stream()
    side.#stream.onMessage((message) => {
      if (message.type !== 'detections') return
      const atMs = Date.now()
      const { widthPx } = message.frame
      const marker = message.detections.find(
        ({ label, score, boxPx }) => label === 'vehicle' && tells(score, boxPx.x2 - boxPx.x1),
      )
      const middle = (from: number, to: number) => (from + to) / 2 / widthPx
      side.results.push({
        camera: Number(message.cameraId.slice('cam-'.length)),
        picture:
          marker &&
          pictureOf(
            model,
            middle(marker.boxPx.x1, marker.boxPx.x2),
            middle(marker.boxPx.y1, marker.boxPx.y2),
          ),
        atMs,
        boxes: message.detections.length,
      })
      side.#stream!.messages.length = 0
    })
    return side
  }

  get pid(): number {
    return this.service.pid
  }

  async on(): Promise<void> {
    await this.#switch(true)
    await resultOfEach(this, this.cameras)
  }

  async off(): Promise<void> {
    await this.#switch(false)
  }

  async stop(): Promise<void> {
    this.#stream?.close()
    await this.service[Symbol.asyncDispose]()
  }

  async #switch(enabled: boolean): Promise<void> {
    for (let id = 0; id < this.cameras; id += 1)
      await this.service.send('PATCH', `/api/v1/cameras/cam-${id}`, { enabled })
  }
}

/** `loop.py`, started for each turn. */
export class LoopSide implements Side {
  readonly name = 'loop'
  readonly results: Result[] = []
  #child: ChildProcess | undefined

  constructor(
    readonly python: string,
    readonly repository: string,
    readonly model: ModelName,
    readonly urls: readonly string[],
    readonly fps: number,
  ) {}

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  async on(): Promise<void> {
    const { widthPx, heightPx } = models[this.model]
    const numbers = [widthPx, heightPx, this.fps, nativeFps].map(String)
    const args = [
      part('./loop.py'),
      join(this.repository, this.model, '1/model.onnx'),
      ...numbers,
      ...this.urls,
    ]
    // Nothing reads what FFmpeg inside OpenCV says of each stream.
    const child = spawn(this.python, args, { stdio: ['ignore', 'pipe', 'ignore'] })
    this.#child = child
    createInterface({ input: child.stdout }).on('line', (line) => {
      const atMs = Date.now()
      const { camera, width, boxes } = JSON.parse(line) as {
        camera: number
        width: number
        boxes: number[][]
      }
      const marker = boxes.find(
        ([x1 = 0, , x2 = 0, , score = 0, label]) => label === 6 && tells(score, x2 - x1),
      )
      const [x1 = 0, y1 = 0, x2 = 0, y2 = 0] = marker ?? []
      this.results.push({
        camera,
        picture: marker && pictureOf(this.model, (x1 + x2) / 2 / width, (y1 + y2) / 2 / width),
        atMs,
        boxes: boxes.length,
      })
    })
    await resultOfEach(this, this.urls.length)
  }

  async off(): Promise<void> {
    const child = this.#child
    if (!child) return
    this.#child = undefined
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }

  stop(): Promise<void> {
    return this.off()
  }
}

/** The cameras of both sides, in a process of their own. */
export class NumberedCameras {
  private constructor(
    readonly child: ChildProcess,
    readonly log: string,
    readonly urls: readonly string[],
  ) {}

  /** @param folder - takes the log. */
  static async start(folder: string, clips: readonly string[], cameras: number): Promise<NumberedCameras> {
    const log = join(folder, `sent-${cameras}.log`)
    const args = [part('./cameras.mjs'), log, String(cameras), ...clips]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const [port] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
    const urls = Array.from({ length: cameras }, (_, camera) => `rtsp://127.0.0.1:${port}/cam${camera}`)
    return new NumberedCameras(child, log, urls)
  }

  /** When each picture was sent, ascending, by `camera picture`. */
  async sent(): Promise<ReadonlyMap<string, readonly number[]>> {
    const all = new Map<string, number[]>()
    for (const line of (await readFile(this.log, 'utf8')).split('\n')) {
      const [camera, picture, atMs] = line.split(' ')
      if (atMs === undefined) continue
      const key = `${camera} ${picture}`
      const times = all.get(key)
      if (times) times.push(Number(atMs))
      else all.set(key, [Number(atMs)])
    }
    return all
  }

  async stop(): Promise<void> {
    const ended = once(this.child, 'exit')
    this.child.kill('SIGTERM')
    await ended
  }
}

/** The demo clips with the number of each picture burnt in: ten squares of a 32nd of the width along the top, white for 1, lowest bit first. */
export async function numberedClips(folder: string): Promise<string[]> {
  const square = (bit: number) =>
    `drawbox=x=iw*${bit}/32:y=0:w=iw/32:h=iw/32:color=white:t=fill:enable='eq(mod(floor(n/${1 << bit}),2),1)'`
  const black = 'drawbox=x=0:y=0:w=iw*10/32:h=iw/32:color=black:t=fill'
  const filters = [black, ...Array.from({ length: 10 }, (_, bit) => square(bit))].join(',')
  const h264 = [
    '-c:v',
    'libx264',
    '-preset',
    'medium',
    '-crf',
    '26',
    '-pix_fmt',
    'yuv420p',
    '-g',
    '50',
    '-bf',
    '0',
  ]
  const clips = ['dock', 'gate', 'press-line', 'yard'].map((name) =>
    join(root, `pipelines/demo/clips/${name}.mp4`),
  )
  await mkdir(join(folder, 'clips'))
  return Promise.all(
    clips.map(async (clip) => {
      const numbered = join(folder, 'clips', basename(clip))
      await promisify(execFile)('ffmpeg', [
        '-v',
        'error',
        '-i',
        clip,
        '-an',
        '-vf',
        filters,
        ...h264,
        numbered,
      ])
      return numbered
    }),
  )
}

/** A repository of the detectors `ppe` and `tiny`. */
export async function numberedModels(python: string, folder: string): Promise<string> {
  const repository = join(folder, 'models')
  await promisify(execFile)(python, [part('./numbered_models.py'), join(root, 'models'), repository])
  return repository
}
