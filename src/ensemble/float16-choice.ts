import type { ExecutionProvider, InferenceConfig } from '../config/inference.js'
import type { DetectorInfo } from '../detector/camera-detector.js'
import type { DetectorPlan } from '../detector/detector-plan.js'
import { comparisonText, type Float16Comparison, isFasterInFloat16 } from '../detector/float16.js'
import { type Compared, Float16Findings } from '../detector/float16-findings.js'
import { gpuBatchSizes } from '../detector/instance-settings.js'
import type { Log } from '../lifecycle/log.js'
import type { OnnxModel } from '../repository/onnx-model.js'
import type { WarmUp } from '../runtime/warm-up.js'

/** A detector and where it is tried. */
export type Choice = Readonly<{
  /** It is the one before it in float16. */
  isFloat16: boolean
  detector: OnnxModel
  plan: DetectorPlan
  warmUps: readonly WarmUp[]
  providers: readonly ExecutionProvider[]
}>

/** What is measured of a detector and the same one in float16. */
export function comparedOn(
  deviceId: number,
  detector: OnnxModel,
  { maxBatchSize }: DetectorPlan,
  float16: OnnxModel,
  inference: InferenceConfig,
): Compared {
  const size = gpuBatchSizes(inference, detector, maxBatchSize).at(-1) ?? 1
  return { paths: [detector.path, float16.path], size, deviceId }
}

/** Which of a detector in float32 and the same one in float16 is tried on a GPU: what was measured there before decides, if anything was. */
export class Float16Choice {
  readonly #choices: readonly Choice[]
  readonly #compared: Compared | undefined
  readonly #findings: Float16Findings
  #known: Float16Comparison | undefined

  constructor(
    choices: readonly Choice[],
    inference: InferenceConfig,
    deviceId: number,
    findings?: Float16Findings,
  ) {
    this.#choices = choices
    this.#findings = findings ?? new Float16Findings()
    const { detector, plan } = choices[choices.findIndex(({ isFloat16 }) => isFloat16) - 1] ?? {}
    this.#compared =
      this.#float16 && detector && plan && comparedOn(deviceId, detector, plan, this.#float16, inference)
  }

  /** Where nothing is known, the one in float16 stands behind the other, marked: whoever loads them measures both. */
  async ordered(): Promise<readonly Choice[]> {
    this.#known = this.#compared && (await this.#findings.find(this.#compared))
    if (this.#known === undefined) return this.#choices
    const others = this.#choices.filter(({ isFloat16 }) => !isFloat16)
    if (!isFasterInFloat16(this.#known)) return others
    const float16 = this.#choices.filter(({ isFloat16 }) => isFloat16)
    return [...float16.map((choice) => ({ ...choice, isFloat16: false })), ...others]
  }

  /** What is told of it. @param measured - at this load. */
  told(running: OnnxModel, measured: Float16Comparison | undefined): Pick<DetectorInfo, 'float16'> {
    const comparison = measured ?? this.#known
    if (comparison === undefined || this.#float16 === undefined) return {}
    const { name: model } = this.#float16
    return { float16: { model, isTaken: running.name === model, comparison } }
  }

  /** Remembers what was measured, and says it. */
  async keep(measured: Float16Comparison | undefined, log: Log): Promise<void> {
    if (measured === undefined || this.#compared === undefined) return
    const taken = isFasterInFloat16(measured) ? 'float16' : 'float32'
    log.info({ model: this.#float16?.name, taken }, comparisonText(measured))
    if ('float16Ms' in measured) await this.#findings.keep(this.#compared, measured)
  }

  get #float16(): OnnxModel | undefined {
    return this.#choices.find(({ isFloat16 }) => isFloat16)?.detector
  }
}
