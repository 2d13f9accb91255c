import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeTemporaryFolder } from '../../lifecycle/temporary-folder.js'
import type { OnnxModel } from '../../repository/onnx-model.js'
import { knownPython, pythonEnvironment } from '../python/python-environment.js'
import { configAfter } from './config-after.js'
import { demoClips, type PictureOrigin, type Pictures, takePictures } from './frames.js'
import { foldPreprocessing } from './fold-preprocessing.js'
import {
  checkOnnx,
  defaultQuantiseSettings,
  type Libraries,
  type QuantiseReport,
  quantise,
  type QuantiseSettings,
  simplify,
  toFloat16,
} from './library-steps.js'
import { type DraftPlan, type ModelDraft, pictureOf, planDraft } from './model-draft.js'
import { type NmsLimits, nmsInside } from './nms-inside.js'
import { prove, type Proof } from './prove.js'
import { proveBatch } from './prove-batch.js'
import { resizeInput } from './resize-input.js'
import { ModelTransformError } from './transform-error.js'
import { needsPython, stepText, type TransformStep } from './transform-step.js'
import { withBatch } from './batch-dimension.js'
import { checkTarget, targetPath, type TransformTarget, writeModel } from './write-model.js'

export type TransformRequest = Readonly<{
  /** In the order in which they are done. */
  steps: readonly TransformStep[]
  target: TransformTarget
  /** The demo's clips where there are none, but int8 calibrates on these alone. */
  frames: readonly PictureOrigin[]
  /** Pictures that int8 calibrates on. */
  calibrationPictures: number
  /** Pictures that each step is proved on. */
  proofPictures: number
  quantise: QuantiseSettings
  nms: NmsLimits
  /** Of `batch=free`: what `max_batch_size` says where the model had none. */
  maxBatchSize: number
  /** How far a step may be off, in place of its own tolerance. */
  tolerance?: number | undefined
  /** A Python that has the packages. */
  python?: string | undefined
  /** Brings Python for the ONNX checker also where no step needs it. */
  check: boolean
  env: NodeJS.ProcessEnv
  quiet: boolean
  say: (line: string) => void
  signal?: AbortSignal | undefined
}>

/** What has no reason to be otherwise. */
export const defaultTransform = {
  calibrationPictures: 200,
  proofPictures: 16,
  quantise: defaultQuantiseSettings,
  nms: { scoreThreshold: 0.05, iouThreshold: 0.5, maxDetections: 100 },
  maxBatchSize: 16,
  check: false,
} as const

export type StepReport = Readonly<{
  step: string
  proof: Proof
  fileBytes: number
  /** Of int8. */
  quantised?: Omit<QuantiseReport, 'checker'>
}>

export type TransformReport = Readonly<{
  model: string
  /** The entry, or the file. */
  path: string
  steps: readonly StepReport[]
  /** What the ONNX checker says of the result: `passed`, or what it complains of; absent where there is no Python. */
  checker?: string
  fileBytes: number
}>

/** Relative, of the largest difference: what the order of additions makes. */
const exact = 1e-3
/** What each step is measured by, and by how much it may be off. */
const proofs: Readonly<Record<TransformStep['kind'], Readonly<{ by: Proof['by']; tolerance: number }>>> = {
  fold: { by: 'largest relative difference', tolerance: exact },
  simplify: { by: 'largest relative difference', tolerance: exact },
  batch: { by: 'largest relative difference', tolerance: exact },
  nms: { by: 'detections that differ', tolerance: 0.01 },
  float16: { by: 'detections that differ', tolerance: 0.02 },
  int8: { by: 'detections that differ', tolerance: 0.15 },
  size: { by: 'detections that differ', tolerance: 0.5 },
}

/**
 * Does the steps one after another, proves each beside what it was made from, and writes the result, which appears complete or not at all.
 *
 * @throws ModelTransformError, which says which node and why; ModelConfigError where the target is there already; PythonError where a step
 *   needs Python and there is none; SystemLimitError; AbortError after the signal
 */
export async function transformModel(model: OnnxModel, request: TransformRequest): Promise<TransformReport> {
  checkTarget(request.target)
  const scratch = makeTemporaryFolder('gantry-transform-')
  try {
    return await new Transformation(model, request, scratch).run()
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

class Transformation {
  #draft: ModelDraft
  #plan: DraftPlan
  #pictures: Pictures | undefined
  #libraries: Libraries | undefined

  constructor(
    readonly model: OnnxModel,
    readonly request: TransformRequest,
    readonly scratch: string,
  ) {
    this.#draft = model
    this.#plan = planDraft(model)
  }

  async run(): Promise<TransformReport> {
    const { steps, target, frames, env, python, check } = this.request
    if (steps.some(({ kind }) => kind === 'int8') && frames.length === 0)
      throw new ModelTransformError(
        'int8 needs pictures to calibrate on',
        'Name some like those of your cameras: --frames FOLDER or --frames CLIP.mp4.',
      )
    // A Python that is not to be had is told before the work of other steps.
    if (check || steps.some(needsPython) || knownPython({ env, python }) !== undefined) await this.#python()
    const reports: StepReport[] = []
    for (const [index, step] of steps.entries()) reports.push(await this.#step(step, index))
    const checker = this.#libraries === undefined ? undefined : await this.#checked(this.#libraries)
    this.request.signal?.throwIfAborted()
    writeModel(this.#draft, target)
    return {
      model: this.model.name,
      path: targetPath(target),
      steps: reports,
      ...(checker === undefined ? {} : { checker }),
      fileBytes: this.#plan.onnx.fileBytes,
    }
  }

  async #step(step: TransformStep, index: number): Promise<StepReport> {
    const { say, signal, proofPictures, tolerance } = this.request
    signal?.throwIfAborted()
    const text = stepText(step)
    say(`${text} ...`)
    const path = join(this.scratch, `step-${index + 1}.onnx`)
    const quantised = await this.#write(step, path)
    const before = { path: this.#draft.path, plan: this.#plan }
    const draft = configAfter(step, this.#draft, this.#plan, path, this.request.maxBatchSize)
    const plan = planDraft(draft)
    const pictures = await this.#proofPictures(proofPictures)
    const { by, tolerance: usual } = proofs[step.kind]
    const proof =
      step.kind === 'batch'
        ? await proveBatch(text, before, { path, plan }, pictures, tolerance ?? usual)
        : await prove(text, before, { path, plan }, pictures, by, tolerance ?? usual)
    this.#draft = draft
    this.#plan = plan
    return {
      step: text,
      proof,
      fileBytes: plan.onnx.fileBytes,
      ...(quantised === undefined ? {} : { quantised }),
    }
  }

  /** Does a step, and writes what comes of it to `path`. */
  async #write(step: TransformStep, path: string): Promise<StepReport['quantised']> {
    const { path: from } = this.#draft
    const { kind } = step
    switch (kind) {
      case 'fold': {
        const { plan, tensor } = pictureOf(this.#plan, kind)
        return void writeFileSync(path, foldPreprocessing(from, plan, tensor))
      }
      case 'nms': {
        const { plan } = pictureOf(this.#plan, kind)
        const { detector } = this.#plan
        if (detector === undefined)
          throw new ModelTransformError(
            'NMS cannot go inside: no head is known by the outputs of the model',
            'Set gantry.head in config.pbtxt (docs/models.md), or leave out the step nms.',
          )
        return void writeFileSync(path, nmsInside(from, detector.head, plan.size, this.request.nms).bytes)
      }
      case 'batch':
        return void writeFileSync(path, withBatch(from, step.batch))
      case 'size': {
        const { plan, tensor } = pictureOf(this.#plan, kind)
        return void writeFileSync(path, await resizeInput(from, plan, tensor, step.size))
      }
      case 'int8': {
        const pictures = await this.#take(
          this.request.frames,
          this.request.calibrationPictures,
          'calibration',
        )
        const libraries = await this.#python()
        const { checker: _, ...report } = await quantise(
          from,
          path,
          this.#plan,
          pictures,
          this.request.quantise,
          libraries,
        )
        return report
      }
      case 'float16':
        await toFloat16(from, path, await this.#python())
        return undefined
      case 'simplify':
        await simplify(from, path, await this.#python())
        return undefined
      default:
        return kind satisfies never
    }
  }

  async #python(): Promise<Libraries> {
    const { env, python, quiet, say, signal } = this.request
    this.#libraries ??= {
      python: await pythonEnvironment({ env, python, quiet, say, signal }),
      env,
      scratch: this.scratch,
      say,
      signal,
    }
    return this.#libraries
  }

  /** @throws ModelTransformError where the checker refuses the result, but not the original */
  async #checked(libraries: Libraries): Promise<string> {
    const { checker } = await checkOnnx(this.#draft.path, libraries)
    if (checker === 'passed' || (await checkOnnx(this.model.path, libraries)).checker !== 'passed')
      return checker
    throw new ModelTransformError(
      `the ONNX checker refuses the result: ${checker}`,
      'This is a fault in the transformation: report it with the model.',
    )
  }

  async #proofPictures(count: number): Promise<Pictures> {
    const { frames } = this.request
    this.#pictures ??=
      this.#plan.picture === undefined
        ? { paths: [], from: '' }
        : await this.#take(frames.length > 0 ? frames : demoClips(), count, 'proof')
    return this.#pictures
  }

  async #take(sources: readonly PictureOrigin[], count: number, folder: string): Promise<Pictures> {
    const { signal } = this.request
    return takePictures({ sources, count, scratch: join(this.scratch, folder), signal })
  }
}
