import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { personParts } from '../../sim/body/person-mesh.js'
import { yoloLabels } from '../../sim/dataset/labels.js'
import { RenderBrowser } from '../../sim/render/browser.js'
import { renderedClip } from '../../sim/render/clip.js'
import { drawPictures } from '../../sim/render/pictures.js'
import { type Scenario, scenarioSchema } from '../../sim/scenario/schema.js'
import { type TruthBox, type TruthObject } from '../../sim/truth/format.js'
import { Observer } from '../../sim/truth/observer.js'
import { SimWorld } from '../../sim/world/world.js'

const [widthPx, heightPx] = [1280, 720]

const scene = (more: object = {}): Scenario =>
  scenarioSchema.parse({
    name: 'small-scene',
    title: 'Small scene',
    about: 'For the tests of the pictures.',
    site: 'dock',
    seed: 5,
    durationS: 1,
    people: [
      { id: 'ada', start: [-2, 3], faceDeg: 20, acts: [{ do: 'walk', to: [2, 3.4] }] },
      {
        id: 'ben',
        start: [1.5, 1.2],
        faceDeg: 300,
        headgear: { inHand: true },
        acts: [{ do: 'crouch', forS: 4 }],
      },
      { id: 'cem', start: [2.2, -3.2], headgear: { kind: 'none' } },
      { id: 'dan', start: [0, 0], rides: 'forklift-1', headgear: { color: 'white' } },
    ],
    machines: [
      {
        id: 'forklift-1',
        kind: 'forklift',
        start: [-2.5, 0],
        faceDeg: 70,
        acts: [{ do: 'lift', toM: 1, overS: 1 }],
      },
      { id: 'truck-1', kind: 'truck', start: [4.2, -0.6], faceDeg: 0 },
    ],
    ...more,
  })

interface Blob {
  pixels: number
  x1: number
  y1: number
  x2: number
  y2: number
}

let browser: RenderBrowser
beforeAll(async () => {
  browser = await RenderBrowser.open()
}, 120_000)
afterAll(async () => {
  await browser[Symbol.asyncDispose]()
})

describe('boxes against a render of object ids', () => {
  it.each([0, 20])(
    'contain all pixels of their object and are tight around it (frame %i)',
    async (frame) => {
      const scenario = scene()
      const world = new SimWorld(scenario)
      const { objects, ignore } = new Observer(world).observe(frame)
      const blobs = await blobsOf(scenario, frame)
      const checked: string[] = []
      for (const object of objects) {
        const blob = unionOf(codesOf(world, object).map((code) => blobs.get(code)))
        if (blob === undefined) {
          expect(object.visible, object.id).toBeLessThan(0.02)
          continue
        }
        expectInside(object.box, blob, object.id)
        if (object.visible > 0.97) expectTight(object.box, blob, object.id)
        if (object.visibleBox !== null && blob.pixels > 300)
          expectTight(object.visibleBox, blob, `${object.id} visible`, 4)
        checked.push(object.class)
      }
      expect(new Set(checked)).toEqual(
        new Set(['helmet', 'head', 'person', 'machinery', 'vehicle', ...checked]),
      )
      expect(ignore.map(({ id }) => id)).toEqual(['ben/helmet'])
    },
    60_000,
  )

  it('tell the visible share of a hidden object within five hundredths', async () => {
    const hidden = scene({ people: [{ id: 'ada', start: [-2.9, -1.6] }], machines: scene().machines })
    const alone = scene({ people: [{ id: 'ada', start: [-2.9, -1.6] }], machines: [] })
    const pixels = async (scenario: Scenario): Promise<number> =>
      unionOf(
        personParts
          .filter((part) => part !== 'carton')
          .map((_, i) => i)
          .map((i) => 1 * 256 + i + 1)
          .map((code) => code)
          .map((code) => blobsByScenario.get(scenario)?.get(code)),
      )?.pixels ?? 0
    const blobsByScenario = new Map<Scenario, Map<number, Blob>>()
    for (const scenario of [hidden, alone]) blobsByScenario.set(scenario, await blobsOf(scenario, 0))
    const share = (await pixels(hidden)) / (await pixels(alone))
    const truth = new Observer(new SimWorld(hidden)).observe(0).objects.find(({ id }) => id === 'ada')
    expect(share).toBeGreaterThan(0.1)
    expect(share).toBeLessThan(0.9)
    expect(Math.abs((truth?.visible ?? 0) - share)).toBeLessThan(0.05)
  }, 60_000)
})

describe('pictures', () => {
  const draw = async (
    scenario: Scenario,
    frames: readonly number[],
    bakePasses = 2,
  ): Promise<Map<number, Buffer>> => {
    const pictures = new Map<number, Buffer>()
    await drawPictures(
      browser,
      scenario,
      { frames, widthPx: 320, heightPx: 180, bakePasses },
      async (frame, rgba) => {
        pictures.set(frame, Buffer.from(rgba))
      },
    )
    return pictures
  }

  it('are the same bytes for the same scenario, frame by frame', async () => {
    const [once, again] = [await draw(scene(), [0, 9, 10]), await draw(scene(), [10])]
    expect(once.get(10)?.equals(again.get(10) ?? Buffer.alloc(0))).toBe(true)
    expect(once.get(10)?.equals(once.get(0) ?? Buffer.alloc(0))).toBe(false)
  }, 60_000)

  it('are the same bytes whatever was drawn before, also of a camera that was knocked aside', async () => {
    const knocked = scene({ faults: [{ kind: 'moved', fromS: 0.2, toS: 1 }] })
    const [once, again] = [await draw(knocked, [0, 7, 15], 12), await draw(knocked, [15], 12)]
    expect(once.get(15)?.equals(again.get(15) ?? Buffer.alloc(0))).toBe(true)
    expect(once.get(15)?.equals(once.get(0) ?? Buffer.alloc(0))).toBe(false)
  }, 60_000)

  it('are all handed over, in order and one at a time, to one who takes long', async () => {
    const faults = [
      { kind: 'frozen', fromS: 0.16, toS: 0.4 },
      { kind: 'blocky', fromS: 0.6, toS: 0.8 },
      { kind: 'frozen', fromS: 0.88, toS: 1 },
    ]
    const frames = Array.from({ length: 25 }, (_, frame) => frame)
    const taken: number[] = []
    let taking = 0
    await drawPictures(
      browser,
      scene({ faults }),
      { frames, widthPx: 160, heightPx: 90, bakePasses: 1 },
      async (frame) => {
        expect(++taking).toBe(1)
        await wait(15)
        taking--
        taken.push(frame)
      },
    )
    expect(taken).toEqual(frames)
    await expect(
      drawPictures(
        browser,
        scene(),
        { frames: [24], widthPx: 160, heightPx: 90, bakePasses: 1 },
        async () => {
          await wait(15)
          throw new Error('the disk is full')
        },
      ),
    ).rejects.toThrow('the disk is full')
  }, 60_000)

  it('are those of the next scenario after one who could not take them', async () => {
    for (const frames of [[0], [0, 1, 2, 3, 4, 5, 6, 7]]) {
      await expect(
        drawPictures(browser, scene(), { frames, widthPx: 160, heightPx: 90, bakePasses: 1 }, () =>
          Promise.reject(new Error('the disk is full')),
        ),
      ).rejects.toThrow('the disk is full')
      expect([...(await draw(scene(), [24])).keys()]).toEqual([24])
    }
  }, 60_000)

  it('show the faults of the camera', async () => {
    const faults = [
      { kind: 'black', fromS: 0, toS: 0.2 },
      { kind: 'frozen', fromS: 0.4, toS: 0.6 },
      { kind: 'covered', fromS: 0.2, toS: 1, strength: 1 },
    ]
    const pictures = await draw(scene({ faults }), [0, 9, 10, 14, 24])
    const mean = (frame: number): number => {
      const rgba = pictures.get(frame) ?? Buffer.alloc(1)
      return rgba.reduce((sum, byte, i) => (i % 4 === 3 ? sum : sum + byte), 0) / rgba.length
    }
    expect(mean(0)).toBe(0)
    expect(pictures.get(10)?.equals(pictures.get(9) ?? Buffer.alloc(0))).toBe(true)
    expect(pictures.get(14)?.equals(pictures.get(9) ?? Buffer.alloc(0))).toBe(true)
    expect(mean(24)).toBeLessThan(25)
  }, 60_000)
})

it('labels the classes that training knows, and no helmet in a hand', () => {
  const labels = yoloLabels(new Observer(new SimWorld(scene())).observe(0))
    .trim()
    .split('\n')
    .map((line) => line.split(' ').map(Number))
  const count = (classIndex: number): number => labels.filter(([index]) => index === classIndex).length
  expect([count(0), count(2), count(5), count(6)]).toEqual([2, 4, 1, 1])
  for (const numbers of labels)
    for (const share of numbers.slice(1)) expect(share).toSatisfy((value: number) => value > 0 && value <= 1)
})

it('renders a scenario to an H.264 clip once, then takes it from the cache', async () => {
  const cacheFolder = await mkdtemp(join(tmpdir(), 'sim-clip-'))
  try {
    const short = scene({ durationS: 0.2 })
    const clip = await renderedClip(short, { cacheFolder, bakePasses: 1 })
    const probe = spawnSync('ffprobe', [
      '-v',
      'error',
      '-count_frames',
      '-show_entries',
      'stream=codec_name,width,height,r_frame_rate,nb_read_frames',
      '-of',
      'csv=p=0',
      clip.videoPath,
    ])
    expect(probe.stdout.toString().trim()).toBe('h264,1280,720,25/1,5')
    expect(clip.truth.frames).toHaveLength(5)
    const { mtimeMs } = await stat(clip.videoPath)
    const again = await renderedClip(short, { cacheFolder, bakePasses: 1 })
    expect(again.videoPath).toBe(clip.videoPath)
    expect((await stat(again.videoPath)).mtimeMs).toBe(mtimeMs)
  } finally {
    await rm(cacheFolder, { recursive: true, force: true })
  }
}, 120_000)

/** Pixels by id: `object * 256 + part`, object from 1 (people first), part from 1 and 0 for machines. */
async function blobsOf(scenario: Scenario, frame: number): Promise<Map<number, Blob>> {
  const blobs = new Map<number, Blob>()
  await browser.draw(
    { kind: 'ids', scenario, frames: [frame], widthPx, heightPx, bakePasses: 1 },
    ({ rgba }) => {
      for (let y = 0, at = 0; y < heightPx; y++) {
        for (let x = 0; x < widthPx; x++, at += 4) {
          const code = rgba.readUInt8(at) * 256 + rgba.readUInt8(at + 1)
          if (code === 0) continue
          const blob = blobs.get(code) ?? { pixels: 0, x1: x, y1: y, x2: x, y2: y }
          blobs.set(code, {
            pixels: blob.pixels + 1,
            x1: Math.min(blob.x1, x),
            y1: Math.min(blob.y1, y),
            x2: Math.max(blob.x2, x + 1),
            y2: Math.max(blob.y2, y + 1),
          })
        }
      }
    },
  )
  return blobs
}

function codesOf(world: SimWorld, object: TruthObject): number[] {
  const [owner = ''] = object.id.split('/')
  const person = world.people.findIndex(({ spec }) => spec.id === owner)
  if (person < 0)
    return [(world.people.length + world.machines.findIndex(({ spec }) => spec.id === owner) + 1) * 256]
  const inHand = world.people[person]?.spec.headgear.inHand === true
  const parts = {
    helmet: ['head', 'headgear'],
    head: inHand ? ['head'] : ['head', 'headgear'],
    vest: ['torso'],
    no_vest: ['torso'],
    machinery: [],
    vehicle: [],
    person: inHand ? ['body', 'torso', 'head'] : ['body', 'torso', 'head', 'headgear'],
  }[object.class]
  return parts.map((part) => (person + 1) * 256 + personParts.findIndex((name) => name === part) + 1)
}

function unionOf(blobs: readonly (Blob | undefined)[]): Blob | undefined {
  return blobs.reduce((union, blob) => {
    if (union === undefined || blob === undefined) return union ?? blob
    return {
      pixels: union.pixels + blob.pixels,
      x1: Math.min(union.x1, blob.x1),
      y1: Math.min(union.y1, blob.y1),
      x2: Math.max(union.x2, blob.x2),
      y2: Math.max(union.y2, blob.y2),
    }
  }, undefined)
}

function expectInside(box: TruthBox, blob: Blob, name: string): void {
  expect(blob.x1, `${name} left`).toBeGreaterThanOrEqual(box[0] - 1)
  expect(blob.y1, `${name} top`).toBeGreaterThanOrEqual(box[1] - 1)
  expect(blob.x2, `${name} right`).toBeLessThanOrEqual(box[2] + 1)
  expect(blob.y2, `${name} bottom`).toBeLessThanOrEqual(box[3] + 1)
}

function expectTight(box: TruthBox, blob: Blob, name: string, px = 3): void {
  const sides = [blob.x1 - box[0], blob.y1 - box[1], blob.x2 - box[2], blob.y2 - box[3]]
  expect(Math.max(...sides.map(Math.abs)), name).toBeLessThanOrEqual(px)
}
