import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { generator } from '../../src/tools/eval/bootstrap.js'
import type { ClassPictures } from '../../src/tools/eval/coco-scores.js'
import { peerPython } from '../bench/peer-python.js'

/** How a made set is out of the ordinary. */
export type SetKind = 'plain' | 'crowds' | 'ties' | 'many' | 'degenerate' | 'empty classes'

export const setKinds: readonly SetKind[] = ['plain', 'crowds', 'ties', 'many', 'degenerate', 'empty classes']

type Box = readonly [number, number, number, number]
type MadeTruth = Readonly<{ image: number; class: number; box: Box; area: number; crowd: boolean }>
type MadeFound = Readonly<{ image: number; class: number; box: Box; score: number }>
export type MadeSet = Readonly<{
  images: number
  classes: number
  truths: readonly MadeTruth[]
  found: readonly MadeFound[]
}>

/** Pictures of 640 x 480 with things of all sizes, and boxes that are near them, on nothing, or double. */
export function madeSet(kind: SetKind, seed: number): MadeSet {
  const random = generator(seed)
  const images = kind === 'many' ? 3 : 12
  const classes = 4
  const truths: MadeTruth[] = []
  const found: MadeFound[] = []
  const between = (from: number, to: number) => from + random() * (to - from)
  const side = () => 2 ** between(2, 8.5)
  const score = () => (kind === 'ties' ? Math.round(random() * 4) / 4 : random())
  const near = ([x, y, w, h]: Box): Box => {
    const by = between(0, 0.25)
    return [
      x + by * w * between(-1, 1),
      y + by * h * between(-1, 1),
      w * between(1 - by, 1 + by),
      h * between(1 - by, 1 + by),
    ]
  }
  for (let image = 1; image <= images; image++) {
    for (let thing = Math.floor(between(0, 9)); thing > 0; thing--) {
      const box: Box = [between(-10, 600), between(-10, 440), side(), side()]
      const id = Math.floor(random() * classes)
      const lastIsEmpty = kind === 'empty classes' && id === classes - 1
      const crowd = kind === 'crowds' && random() < 0.4
      // COCO's areas are those of masks: less than the box.
      const area = box[2] * box[3] * (random() < 0.5 ? 1 : between(0.3, 1))
      if (!lastIsEmpty) truths.push({ image, class: id, box, area, crowd })
      for (let times = Math.floor(between(0, crowd ? 6 : 2.5)); times > 0; times--)
        found.push({
          image,
          class: random() < 0.9 ? id : Math.floor(random() * classes),
          box: near(box),
          score: score(),
        })
      if (kind === 'ties' && random() < 0.3) found.push({ image, class: id, box, score: score() })
    }
    for (let alarms = Math.floor(between(0, kind === 'many' ? 260 : 6)); alarms > 0; alarms--) {
      const id = Math.floor(random() * (kind === 'many' ? 2 : classes))
      found.push({
        image,
        class: id,
        box: [between(-20, 620), between(-20, 460), side(), side()],
        score: score(),
      })
    }
    if (kind === 'degenerate') {
      const x = between(0, 500)
      found.push({ image, class: 0, box: [x, 10, 0, 20], score: score() })
      found.push({ image, class: 1, box: [x, 10, 20, -5], score: score() })
      found.push({ image, class: 2, box: [x, 10, 1e-9, 1e-9], score: score() })
      truths.push({ image, class: 0, box: [x, 10, 0, 0], area: 0, crowd: false })
      truths.push({ image, class: 1, box: [x, 0, 1024, 1], area: 1024, crowd: false })
      truths.push({ image, class: 2, box: [x, 0, 96, 96], area: 9216, crowd: false })
    }
  }
  // What nothing is found of at all, and a class that is found where it never is.
  if (found.length === 0) found.push({ image: 1, class: 0, box: [0, 0, 10, 10], score: 0.5 })
  return { images, classes, truths, found }
}

/** As this project takes it. */
export function asClassPictures({ images, classes, truths, found }: MadeSet): ClassPictures {
  return Array.from({ length: classes }, (_, id) =>
    Array.from({ length: images }, (__, index) => ({
      truths: truths
        .filter((truth) => truth.class === id && truth.image === index + 1)
        .map(({ box, area, crowd }) => ({ box, areaPx: area, crowd })),
      found: found
        .filter((each) => each.class === id && each.image === index + 1)
        .map(({ box, score }) => ({ box, score })),
    })),
  )
}

/** Instances and results as COCO's files have them. */
export type CocoFiles = ReturnType<typeof asCoco>

export function asCoco({ images, classes, truths, found }: MadeSet) {
  return {
    truth: {
      images: Array.from({ length: images }, (_, index) => ({ id: index + 1, width: 640, height: 480 })),
      categories: Array.from({ length: classes }, (_, index) => ({ id: index + 1, name: `class ${index}` })),
      annotations: truths.map(({ image, class: id, box, area, crowd }, index) => ({
        id: index + 1,
        image_id: image,
        category_id: id + 1,
        bbox: box,
        area,
        iscrowd: Number(crowd),
      })),
    },
    found: found.map(({ image, class: id, box, score }) => ({
      image_id: image,
      category_id: id + 1,
      bbox: box,
      score,
    })),
  }
}

type Nested = readonly (number | Nested)[]
export type PeerScores = Readonly<{
  stats: readonly number[]
  precision: Nested
  scores: Nested
  recall: Nested
}>

/** pycocotools, from PyPI at the first call. Undefined where it cannot be had. @throws in CI, where nothing may be skipped */
export async function cocoPeer(): Promise<
  ((sets: readonly CocoFiles[]) => Promise<readonly PeerScores[]>) | undefined
> {
  const python = await peerPython('peer-coco')
  if (python === undefined && process.env['CI']) throw new Error('tests against pycocotools must run in CI')
  if (python === undefined) return undefined
  const script = fileURLToPath(new URL('../bench/peer-coco/coco.py', import.meta.url))
  return (sets) =>
    new Promise((resolve, reject) => {
      const child = execFile(python, [script], { maxBuffer: 1e9 }, (error, stdout) => {
        if (error !== null) reject(new Error('pycocotools failed', { cause: error }))
        else resolve(JSON.parse(stdout) as PeerScores[])
      })
      child.stdin?.end(JSON.stringify(sets))
    })
}
