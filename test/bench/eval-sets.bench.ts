/**
 * Accuracy of a model on valid splits as `gantry eval` has it and as pycocotools has it, on the same detections.
 *
 *     npx tsx test/bench/eval-sets.bench.ts [model] [folder of the sets]
 *
 * Lowest score, NMS and number of boxes are those of training/ppe/evaluate.py. What differs from its figures: boxes of the sets are taken as
 * they are, and an anchor has its best class alone.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { inferenceSchema } from '../../src/config/inference.js'
import { runModel } from '../../src/tools/eval/model-run.js'
import { scoresOf } from '../../src/tools/eval/model-scores.js'
import { scoredClasses } from '../../src/tools/eval/scored-classes.js'
import { readYoloSet } from '../../src/tools/eval/yolo-set.js'
import { openRepositoryScorer } from '../../src/tools/scoring/repository-scorer.js'
import { asCoco, cocoPeer, type MadeSet } from '../support/coco-sets.js'
import { silentLog } from '../support/silent-log.js'
import { report } from './bench.js'

const [model = 'ppe_detect', root = join(import.meta.dirname, '../../../shared/datasets')] =
  process.argv.slice(2)
/** Classes that each set labels completely, under the names of the shipped detector. */
const sets = [
  { name: 'hardhat-workers', only: ['helmet', 'head'], map: {} },
  { name: 'construction-safety', only: ['person', 'vest', 'no_vest'], map: { 'no-helmet': 'head' } },
  { name: 'forklift', only: ['person', 'machinery'], map: { forklift: 'machinery' } },
  {
    name: 'ppe',
    only: ['person', 'vest', 'no_vest', 'machinery', 'vehicle'],
    map: { 'NO-Safety Vest': 'no_vest', 'Safety Vest': 'vest' },
  },
]

const peer = await cocoPeer()
if (peer === undefined || !existsSync(root)) throw new Error(`needs pycocotools, and the sets in ${root}`)
const scorer = await openRepositoryScorer({
  repositories: 'models',
  model,
  inference: inferenceSchema.parse({ providers: ['cpu'] }),
  limits: { scoreThreshold: 0.01, iouThreshold: 0.6, maxDetections: 100 },
  log: silentLog(),
})
for (const { name, only, map } of sets) {
  const set = readYoloSet(join(root, name), 'val')
  const classes = scoredClasses(set.classes, [scorer.info.labels], {
    only,
    map: new Map(Object.entries(map)),
  })
  const { labels } = classes
  const run = await runModel(scorer, set, classes, { signal: new AbortController().signal })
  const scores = scoresOf(run, { labels, shownScore: 0.3, atOnce: scorer.info.atOnce })
  const samples = [...run.samples.values()]
  const truths = samples.flatMap((sample, index) =>
    sample.truths.map(({ class: id, box, areaPx, crowd }) => ({
      image: index + 1,
      class: id,
      box,
      area: areaPx,
      crowd,
    })),
  )
  const found = samples.flatMap((sample, index) =>
    sample.found.map(({ class: id, box, score }) => ({ image: index + 1, class: id, box, score })),
  )
  const made: MadeSet = { images: samples.length, classes: labels.length, truths, found }
  const [theirs] = await peer([asCoco(made)])
  const ours = Object.values(scores.summary).map((value) => value ?? -1)
  const apart = Math.max(...ours.map((value, index) => Math.abs(value - theirs!.stats[index]!)))
  report(`eval of ${model} on ${name}`, 'share', {
    pictures: samples.length,
    map: scores.summary.map ?? Number.NaN,
    pycocotoolsMap: theirs!.stats[0]!,
    largestDifference: apart.toExponential(1),
    ...Object.fromEntries(
      scores.classes.map(({ label, truths: count, summary }) => [
        label,
        `${summary.ap50?.toFixed(3)}/${summary.map?.toFixed(3)} (${count})`,
      ]),
    ),
    picturesPerSecond: scores.speed.picturesPerSecond,
  })
}
await scorer.stop(1_000)
