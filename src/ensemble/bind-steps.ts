import { conventions, type DetectorModel, planHead, planPicture } from '../detector/detector-plan.js'
import { type HeadPlan, outputsOf } from '../detector/heads/head.js'
import { beginsWithNothing } from '../detector/heads/label-list.js'
import type { InputPlan } from '../detector/input-tensor.js'
import type { SizePx } from '../vision/letterbox.js'
import { ModelConfigError } from '../repository/errors.js'
import type { EnsembleStep, ModelConfig } from '../repository/model-config.js'
import type { CropForm } from '../detector/crop/crop-parameters.js'
import type { HeadBinding } from '../detector/detection-head/head-parameters.js'
import type { LetterboxPlan } from '../detector/letterbox/letterbox-parameters.js'
import type { LoadedModel } from '../runtime/loaded-model.js'
import { modelTensorOf } from '../tensors/tensor.js'

/** A step of an ensemble; without a model it is a built-in one that takes its settings from its neighbours. */
export type BindingStep = Readonly<{ title: string; step: EnsembleStep; model: LoadedModel | undefined }>

/**
 * What built-in steps learn from the detectors beside them: a letterbox writes what the model behind it takes, and a detection
 * head reads what the model before it gives.
 */
export class StepBinder {
  constructor(
    readonly ensemble: string,
    readonly steps: readonly BindingStep[],
    /** Of models that leave their size open, where it is decided elsewhere. */
    readonly inputSizes: ReadonlyMap<string, SizePx> = new Map(),
  ) {}

  /** @throws ModelConfigError, ModelInvalidError naming the step or the model's tensor. */
  letterbox(letterbox: BindingStep): LetterboxPlan {
    const { detector, picture } = this.#picture(letterbox)
    const { layout, size } = picture
    return { layout, size, ...conventions(detector, this.#headKind(letterbox, size)) }
  }

  /**
   * @param labels - of the output that the detections become, where it has its own: the class of a detection is a line of that list.
   * @throws ModelConfigError, ModelLabelsError, HeadUnknownError
   */
  head(head: BindingStep, labels?: readonly string[]): HeadBinding {
    return this.#headFor(head, this.#inputSize(head), labels)
  }

  /**
   * What the model takes that reads the crops, or `undefined` where none does: the parameters then say their size.
   *
   * @param asked - parameters of the step: a size is taken from it where the model leaves it open.
   * @throws ModelConfigError, ModelInvalidError
   */
  crop(crop: BindingStep, asked: ModelConfig): CropForm | undefined {
    const [first, ...others] = this.#readers(crop.step.output_map.crops).map((detector) => {
      const size = asked.parameters['gantry.crop_size']
      const parameters = { ...detector.config.parameters, ...(size && { 'gantry.crop_size': size }) }
      const sized = { ...detector, config: { ...detector.config, parameters } }
      const { layout, size: sizePx } = planPicture(sized, 'gantry.crop_size')
      return { layout, size: sizePx, ...conventions(detector, undefined) }
    })
    if (others.some((other) => JSON.stringify(other) !== JSON.stringify(first)))
      this.#fail(
        crop,
        'has its "crops" read by models that take them otherwise',
        'Give each a crop of its own.',
      )
    return first
  }

  /** The models that read a tensor, with the input that it is. */
  #readers(tensor: string | undefined): readonly DetectorModel[] {
    return this.steps.flatMap(({ step, model }) =>
      Object.entries(step.input_map).flatMap(([own, read]) =>
        model === undefined || tensor === undefined || read !== tensor
          ? []
          : [detectorModel(model, { inputs: [own] })],
      ),
    )
  }

  /** The model that reads the pixels, and its image input. */
  #picture(letterbox: BindingStep): {
    detector: DetectorModel
    picture: Pick<InputPlan, 'name' | 'layout' | 'size'>
  } {
    const [detector] = this.#readers(letterbox.step.output_map.pixels)
    if (detector !== undefined) return { detector, picture: this.#pictureOf(detector) }
    return this.#fail(
      letterbox,
      'has no model that reads its "pixels"',
      'Map "pixels" to the image input of a detector, or set "gantry.input_size" in a folder with backend "letterbox".',
    )
  }

  #pictureOf(detector: DetectorModel): Pick<InputPlan, 'name' | 'layout' | 'size'> {
    return planPicture(detector, 'gantry.input_size', this.inputSizes.get(detector.name))
  }

  /** YOLOX wants its pictures otherwise than the others. A head that nobody recognises says nothing. */
  #headKind(letterbox: BindingStep, size: SizePx): HeadPlan['kind'] | undefined {
    const geometry = letterbox.step.output_map.geometry
    const head = this.steps.find(
      ({ step, model }) =>
        model === undefined && geometry !== undefined && step.input_map.geometry === geometry,
    )
    return head === undefined ? undefined : this.#headFor(head, size).plan.kind
  }

  /** The letterbox that gives the head its geometry knows the size; without one, the detector itself does. */
  #inputSize(head: BindingStep): SizePx {
    const geometry = head.step.input_map.geometry
    const letterbox = this.steps.find(
      ({ step, model }) => model === undefined && step.output_map.geometry === geometry,
    )
    if (letterbox !== undefined) return this.#picture(letterbox).picture.size
    return this.#pictureOf(detectorModel(this.#producer(head).model, {})).size
  }

  #headFor(head: BindingStep, input: SizePx, labels?: readonly string[]): HeadBinding {
    const { step, model } = this.#producer(head)
    const ownNames = new Map<string, string>()
    for (const [own, tensor] of Object.entries(head.step.input_map))
      for (const [output, written] of Object.entries(step.output_map))
        if (written === tensor) ownNames.set(output, own)
    const found = detectorModel(model, { outputs: [...ownNames.keys()] })
    const detector =
      labels === undefined || haveSameLines(labels, found.labels ?? [])
        ? found
        : { ...found, labels, labelsFrom: `the list of ensemble "${this.ensemble}"` }
    const plan = planHead(detector, input)
    const inputs = outputsOf(plan).map((output) => {
      const spec = model.outputs.find(({ name }) => name === output)
      const own = ownNames.get(output)
      if (spec === undefined || own === undefined)
        return this.#fail(head, `is not given output "${output}" of the detector`, 'Add it to both maps.')
      return { ...spec, name: own }
    })
    return { plan, input, inputs, labels: detector.labels ?? [] }
  }

  /** The model whose outputs the head reads. */
  #producer(head: BindingStep): BindingStep & { model: LoadedModel } {
    const read = Object.values(head.step.input_map)
    for (const other of this.steps) {
      const { model } = other
      if (model !== undefined && Object.values(other.step.output_map).some((tensor) => read.includes(tensor)))
        return { ...other, model }
    }
    return this.#fail(
      head,
      'reads nothing that a model gives',
      'Map the outputs of the detector to its inputs.',
    )
  }

  #fail({ title }: BindingStep, problem: string, hint: string): never {
    throw new ModelConfigError(`ensemble "${this.ensemble}": ${title} ${problem}`, hint)
  }
}

/** Whether two lists name the same classes line by line, be it in other words. */
function haveSameLines(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && beginsWithNothing(a) === beginsWithNothing(b)
}

/** A served model as a detector, with those of its tensors that count. */
function detectorModel(
  model: LoadedModel,
  only: Readonly<{ inputs?: readonly string[]; outputs?: readonly string[] }>,
): DetectorModel {
  const [labels = []] = model.outputs
    .map(({ name }) => model.labels(name))
    .sort((a, b) => b.length - a.length)
  return {
    name: model.name,
    config: model.config,
    configuredMaxBatchSize: undefined,
    labels: labels.length === 0 ? undefined : labels,
    labelsFrom: 'its labels',
    onnx: {
      inputs: model.inputs.filter(({ name }) => only.inputs?.includes(name) ?? true).map(modelTensorOf),
      outputs: model.outputs.filter(({ name }) => only.outputs?.includes(name) ?? true).map(modelTensorOf),
      metadata: {},
    },
  }
}
