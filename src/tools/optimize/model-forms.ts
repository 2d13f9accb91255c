import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { GantryError } from '../../errors.js'
import type { ModelConfig } from '../../repository/model-config.js'
import { readModel } from '../../repository/model-definition.js'
import { type OnnxModel, openOnnxModel } from '../../repository/onnx-model.js'
import { SystemLimitError } from '../../lifecycle/system-limit.js'
import type { SizePx } from '../../vision/letterbox.js'
import type { PictureOrigin } from '../transform/frames.js'
import { planDraft } from '../transform/model-draft.js'
import { defaultTransform, transformModel } from '../transform/transform-model.js'
import { stepText, type TransformStep } from '../transform/transform-step.js'
import { writeModel } from '../transform/write-model.js'

/** Arithmetic that forms of a model can have. */
export const precisions = ['float32', 'int8', 'float16'] as const
export type Precision = (typeof precisions)[number]

/** A form of the model: other arithmetic, another size of picture, batches. */
export type ModelForm = Readonly<{
  /** For people and for the space: `original`, `int8`, `640x384 int8`. */
  name: string
  /** Of its entry in the repository of forms. */
  entry: string
  /** `<entry>/<version>` */
  versionDir: string
  config: ModelConfig
  fileBytes: number
}>

export type FormsRequest = Readonly<{
  precisions: readonly Precision[]
  /** Beside the size that it has. */
  sizes: readonly SizePx[]
  /** Batches of more than one are tried: a model that takes one alone gets a free batch dimension where that can be had. */
  batches: boolean
  /** Most that is tried of them. */
  maxBatchSize: number
  /** What int8 calibrates on. */
  frames: readonly PictureOrigin[]
  /** Repository for the forms; those that are there already are taken. */
  folder: string
  python: string | undefined
  env: NodeJS.ProcessEnv
  quiet: boolean
  say: (line: string) => void
  signal: AbortSignal
}>

export type ModelForms = Readonly<{
  /** The model as it is, first. */
  forms: readonly ModelForm[]
  /** What could not be made, and why, a sentence each. */
  notes: readonly string[]
}>

/** The name of the model as it is. */
export const originalForm = 'original'

/** So much may a step change what a detector finds: what of it is too much the limits of accuracy say. */
const judgedLater = 1

/**
 * Makes the forms of a model that are to be tried, each by the steps of `gantry models transform`. One that cannot be made is left out, and
 * everything goes on without it.
 *
 * @throws ModelConfigError and others where the model itself cannot be read; SystemLimitError; AbortError after the signal
 */
export async function makeForms(model: OnnxModel, request: FormsRequest): Promise<ModelForms> {
  const { batches, folder, precisions: wanted, sizes } = request
  const notes: string[] = []
  const isDetector = planDraft(model).detector !== undefined
  keepOriginal(model, folder)
  const forms = [formOf(folder, originalForm, originalForm)]
  const attempt = async (from: OnnxModel, steps: readonly TransformStep[]): Promise<boolean> => {
    const name = steps.map(textOf).join(' ')
    try {
      forms.push(await made(from, name, steps, isDetector, request))
      return true
    } catch (error) {
      if (!(error instanceof GantryError) || isOfThisMachine(error)) throw error
      notes.push(`${name} is left out: ${error.message}`)
      return false
    }
  }
  const isFixed = batches && (model.config.max_batch_size ?? 0) === 0
  const isFreed = isFixed && (await attempt(model, [{ kind: 'batch', batch: 'free' }]))
  // Where a free batch cannot be had, the others go without it.
  const base = isFreed ? openOnnxModel(readModel([folder], forms.at(-1)?.entry ?? originalForm)) : model
  for (const size of [undefined, ...sizes])
    for (const precision of wanted) {
      const steps: readonly TransformStep[] = [
        ...(size === undefined ? [] : [{ kind: 'size', size } as const]),
        ...(precision === 'float32' ? [] : [{ kind: precision }]),
      ]
      if (steps.length > 0) await attempt(base, steps)
    }
  return { forms, notes }
}

async function made(
  model: OnnxModel,
  name: string,
  steps: readonly TransformStep[],
  isDetector: boolean,
  { folder, frames, maxBatchSize, python, env, quiet, say, signal }: FormsRequest,
): Promise<ModelForm> {
  const entry = name.replace(/[^A-Za-z0-9]+/g, '_')
  if (existsSync(join(folder, entry))) return formOf(folder, name, entry)
  say(`${name} ...`)
  await transformModel(model, {
    ...defaultTransform,
    steps,
    target: { kind: 'entry', repository: folder, name: entry },
    frames,
    maxBatchSize,
    ...(isDetector && !isExact(steps) && { tolerance: judgedLater }),
    python,
    env,
    quiet,
    say,
    signal,
  })
  return formOf(folder, name, entry)
}

/** A free batch changes nothing that is found. */
function isExact(steps: readonly TransformStep[]): boolean {
  return steps.every(({ kind }) => kind === 'batch')
}

function textOf(step: TransformStep): string {
  if (step.kind === 'batch') return 'batches'
  return step.kind === 'size' ? stepText(step).replace('size=', '') : step.kind
}

/** Whatever becomes of the model that it was copied from, all forms are of the same. */
function keepOriginal(model: OnnxModel, folder: string): void {
  if (!existsSync(join(folder, originalForm)))
    writeModel(model, { kind: 'entry', repository: folder, name: originalForm })
}

function formOf(folder: string, name: string, entry: string): ModelForm {
  const { config, onnx, version } = openOnnxModel(readModel([folder], entry))
  return { name, entry, versionDir: join(folder, entry, version), config, fileBytes: onnx.fileBytes }
}

/** A disk that is full leaves nothing to go on with. */
function isOfThisMachine(error: GantryError): boolean {
  return error instanceof SystemLimitError
}
