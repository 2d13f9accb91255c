import { StatisticsRecorder } from '../../runtime/statistics-recorder.js'
import type { OpenedModel } from '../../runtime/backend.js'
import type { LoadedModel } from '../../runtime/loaded-model.js'
import { ServingError } from '../../tensors/serving-error.js'
import type { ModelStatistics } from '../../runtime/statistics.js'

/** A model as its files describe it: enough to put ensembles together. It runs nothing. */
export class DescribedModel implements LoadedModel {
  readonly config: LoadedModel['config']
  readonly platform: string
  readonly inputs: LoadedModel['inputs']
  readonly outputs: LoadedModel['outputs']

  /** @param labelsOf - class names by output. */
  constructor(
    readonly name: string,
    readonly version: string,
    { config, platform, inputs, outputs }: Pick<OpenedModel, 'config' | 'platform' | 'inputs' | 'outputs'>,
    readonly labelsOf: ReadonlyMap<string, readonly string[]>,
  ) {
    this.config = config
    this.platform = platform
    this.inputs = inputs
    this.outputs = outputs
  }

  labels(output: string): readonly string[] {
    return this.labelsOf.get(output) ?? []
  }

  statistics(): ModelStatistics {
    return new StatisticsRecorder(this.name, this.version).statistics()
  }

  generation(): Promise<string> {
    return Promise.resolve('')
  }

  infer(): Promise<never> {
    return Promise.reject(new ServingError('UNAVAILABLE', `model '${this.name}' is only described`))
  }

  stop(): Promise<void> {
    return Promise.resolve()
  }
}
