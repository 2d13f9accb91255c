type Maps = Readonly<Record<string, string>>

const maps = (kind: 'input_map' | 'output_map', entries: Maps) =>
  Object.entries(entries)
    .map(([key, value]) => `${kind} { key: "${key}" value: "${value}" }`)
    .join(' ')

/** A step of an ensemble, as `config.pbtxt` has it. */
export function ensembleStep(model: string, inputs: Maps, outputs: Maps): string {
  return `step { model_name: "${model}" model_version: -1 ${maps('input_map', inputs)} ${maps('output_map', outputs)} }`
}

/** Parameters, as `config.pbtxt` has them. */
export function parametersText(parameters: Readonly<Record<string, string>>): string {
  return Object.entries(parameters)
    .map(([key, value]) => `parameters { key: "${key}" value { string_value: "${value}" } }`)
    .join('\n')
}

export type EnsembleText = Readonly<{
  steps: readonly string[]
  /** Beside `detections` FP32 `[-1, 6]`. */
  outputs?: string
  parameters?: Readonly<Record<string, string>>
  maxBatchSize?: number
}>

/** The `config.pbtxt` of an ensemble from `image` to `detections`. */
export function pictureEnsemble({
  steps,
  outputs = '',
  parameters = {},
  maxBatchSize,
}: EnsembleText): string {
  return `platform: "ensemble"
    ${maxBatchSize === undefined ? '' : `max_batch_size: ${maxBatchSize}`}
    input { name: "image" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] }
    output { name: "detections" data_type: TYPE_FP32 dims: [ -1, 6 ] }
    ${outputs}
    ensemble_scheduling { ${steps.join('\n')} }
    ${parametersText(parameters)}`
}

/** The steps of cameras around a detector `red`. */
export const redSteps = {
  letterbox: ensembleStep('letterbox', { image: 'image' }, { pixels: 'pixels', geometry: 'geometry' }),
  detect: ensembleStep('red', { images: 'pixels' }, { output0: 'head' }),
  head: ensembleStep(
    'detection_head',
    { output0: 'head', geometry: 'geometry' },
    { detections: 'detections' },
  ),
}
