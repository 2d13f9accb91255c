import { ModelConfigError } from '../../repository/errors.js'
import type { DetectionLimits } from '../../detector/frame-reader.js'
import type { DetectorModel } from '../../detector/detector-plan.js'
import { type StrangeScores, strangeScoresText } from '../../detector/strange-scores.js'
import { nowMs } from '../../lifecycle/clock.js'
import { emptyModelConfig, type ModelConfig } from '../../repository/model-config.js'
import { modelTensorOf, type TensorSpec } from '../../tensors/tensor.js'
import type { KServeClient, ModelRef } from '../client/kserve-client.js'
import type { Picture, PictureScorer, ScoredPicture, ScorerInfo } from './picture-scorer.js'
import { ServedDetector } from './served-detector.js'
import { pictureTensors, ServedEnsemble } from './served-ensemble.js'
import type { ServedForm } from './served-form.js'

export type ServerScorerOptions = Readonly<{
  /** Closed with the scorer. */
  client: KServeClient
  model: ModelRef
  /** Names of the classes, in the order of their numbers: a server does not tell them. */
  labels: readonly string[]
  /** What the configuration of a detector says of it, as `config.pbtxt` does: `gantry.*` parameters. */
  config?: ModelConfig
  /** What counts as a detection, of a model whose outputs are read here. */
  limits: DetectionLimits
  /** Requests at the same time. */
  atOnce: number
  /** Told once what is wrong with the scores of the model, where something is. */
  warn?: (text: string) => void
}>

/** Scores pictures by what a running server answers, each in a request of its own. */
class ServerScorer implements PictureScorer {
  constructor(
    readonly info: ScorerInfo,
    readonly client: KServeClient,
    readonly model: ModelRef,
    readonly form: ServedForm,
  ) {}

  async score(picture: Picture): Promise<ScoredPicture> {
    const beganMs = nowMs()
    const { size, inputs, read } = await this.form.requestFor(picture)
    const sentMs = nowMs()
    const answer = await this.client.infer(this.model, inputs, this.form.outputs)
    const detections = read(answer)
    return { size, detections, decodeMs: sentMs - beganMs, inferMs: nowMs() - sentMs }
  }

  /** Requests that are under way fail. */
  stop(): Promise<void> {
    this.client.close()
    return Promise.resolve()
  }
}

/**
 * A model of a running server: an ensemble for pictures, or a detector whose head is known.
 *
 * @throws ModelConfigError for a model that is neither, HeadUnknownError, and what the client says of the server
 */
export async function openServerScorer(options: ServerScorerOptions): Promise<PictureScorer> {
  const { client, model, labels, atOnce } = options
  try {
    const { name, versions, inputs, outputs } = await client.modelMetadata(model)
    const form = await formOf(options, inputs, outputs)
    const version = model.version ?? versions.at(-1)
    const info: ScorerInfo = {
      name: version === undefined ? name : `${name}:${version}`,
      labels: form.labels.length > 0 ? form.labels : labels,
      where: client.url,
      input: form.input,
      atOnce,
    }
    return new ServerScorer(info, client, model, form)
  } catch (error) {
    client.close()
    throw error
  }
}

async function formOf(
  { client, model, labels, config = emptyModelConfig, limits, warn }: ServerScorerOptions,
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[],
): Promise<ServedForm> {
  let isTold = false
  const onStrange = (strange: StrangeScores) => {
    if (!isTold) warn?.(`model "${model.name}" ${strangeScoresText(strange)}`)
    isTold = true
  }
  const ensemble = pictureTensors(inputs, outputs)
  if (ensemble !== undefined) {
    if (labels.length === 0) throw withoutLabels(model.name)
    return new ServedEnsemble(ensemble.image, ensemble.detections, labels, onStrange)
  }
  const served = await client.modelConfig(model)
  const maxBatchSize = served?.maxBatchSize ?? 0
  const detector: DetectorModel = {
    name: model.name,
    config: { ...config, max_batch_size: maxBatchSize },
    configuredMaxBatchSize: maxBatchSize,
    labels: labels.length === 0 ? undefined : labels,
    labelsFrom: 'label_filename',
    onnx: { inputs: inputs.map(modelTensorOf), outputs: outputs.map(modelTensorOf), metadata: {} },
  }
  if (labels.length === 0) throw withoutLabels(model.name)
  return new ServedDetector(detector, limits, onStrange)
}

function withoutLabels(name: string): ModelConfigError {
  return new ModelConfigError(
    `the names of the classes of "${name}" are not known: a server does not tell them`,
    'Give them with --labels FILE, one on each line, or name a repository that has the model with -r or -c.',
  )
}
