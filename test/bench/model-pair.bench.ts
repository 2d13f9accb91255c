/**
 * Two forms of one model on one thread, in turn: the shipped one beside what `gantry models transform` makes, for instance.
 *
 *     npx tsx test/bench/model-pair.bench.ts ONE.onnx OTHER.onnx [pairs] [seconds]
 *
 * Inputs are the same noise; of free dimensions the first is 1, the others are 416. `model_pair`: median time of a run of the other over that of the one, the median of the
 * ratios of neighbouring rounds with the interval that holds the true median with 95 %.
 */
import * as ort from 'onnxruntime-node'
import { nowMs } from '../../src/lifecycle/clock.js'
import { medianOf, quantile, report } from './bench.js'

const [one = '', other = '', pairsText = '15', secondsText = '3'] = process.argv.slice(2)
const [pairs, roundMs] = [Number(pairsText), Number(secondsText) * 1_000]

type Model = Readonly<{ session: ort.InferenceSession; feeds: Record<string, ort.Tensor> }>

function noise({ name, type, shape }: ort.InferenceSession.TensorValueMetadata): ort.Tensor {
  const dims = shape.map((size, index) => {
    if (typeof size === 'number' && size > 0) return size
    return index === 0 ? 1 : 416
  })
  const length = dims.reduce((product, size) => product * size, 1)
  const bytes = Uint8Array.from({ length }, (_, index) => (index * 2_654_435_761) >>> 24)
  if (type === 'uint8') return new ort.Tensor('uint8', bytes, dims)
  if (type === 'float32')
    return new ort.Tensor(
      'float32',
      Float32Array.from(bytes, (value) => value / 255),
      dims,
    )
  throw new TypeError(`the input ${name} is ${type}: only uint8 and float32 are made here`)
}

async function open(path: string): Promise<Model> {
  const session = await ort.InferenceSession.create(path, {
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    executionMode: 'sequential',
  })
  const inputs = session.inputMetadata.filter((input) => input.isTensor)
  return { session, feeds: Object.fromEntries(inputs.map((input) => [input.name, noise(input)])) }
}

async function medianMs({ session, feeds }: Model, forMs: number): Promise<number> {
  const runs: number[] = []
  const untilMs = nowMs() + forMs
  while (nowMs() < untilMs) {
    const beganMs = nowMs()
    await session.run(feeds)
    runs.push(nowMs() - beganMs)
  }
  return quantile(runs, 0.5)
}

const models = [await open(one), await open(other)] as const
for (const model of models) await medianMs(model, 1_000)
const taken: [number, number][] = []
for (let pair = 0; pair < pairs; pair += 1) {
  const order = pair % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)
  const ms: [number, number] = [0, 0]
  for (const index of order) ms[index] = await medianMs(models[index], roundMs)
  taken.push(ms)
}
report('model_pair', 'x', {
  ...medianOf(taken.map(([first, second]) => second / first)),
  oneMs: medianOf(taken.map(([first]) => first)).median,
  otherMs: medianOf(taken.map(([, second]) => second)).median,
  pairs,
})
