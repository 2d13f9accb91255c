import { hiddenInputs, type ModelConfig } from '../model-config.js'
import { type ConfigFault, isGiven, listed } from './fault.js'

/** Names that ONNX Runtime's platform goes by. */
const onnxPlatforms = ['onnxruntime_onnx', 'onnxruntime']

/** What runs the model, in which versions, and what it is tried with. */
export function modelFaults(config: ModelConfig): readonly ConfigFault[] {
  return [
    ...platformFaults(config),
    ...ensembleFaults(config),
    ...versionFaults(config),
    ...warmupFaults(config),
  ]
}

function platformFaults(config: ModelConfig): readonly ConfigFault[] {
  const { name: model = '', platform = '', backend = '', ensemble_scheduling } = config
  if (ensemble_scheduling !== undefined)
    return ['', 'ensemble'].includes(platform) && ['', 'ensemble'].includes(backend)
      ? []
      : [
          {
            field: platform === '' || platform === 'ensemble' ? 'backend' : 'platform',
            problem: `ensemble scheduling cannot be set for model '${model}' whose platform is not ensemble: platform "${platform}", backend "${backend}"`,
            fix: 'write platform "ensemble" and no backend, or leave ensemble_scheduling out',
          },
        ]
  if (platform === 'ensemble')
    return [
      {
        field: 'ensemble_scheduling',
        problem: `ensemble scheduling must be set for ensemble ${model} whose platform is ensemble`,
        fix: 'write its steps',
      },
    ]
  if (backend === '' || platform === '' || (backend === 'onnxruntime' && onnxPlatforms.includes(platform)))
    return []
  return [
    {
      field: 'platform',
      problem: `unexpected 'platform' and 'backend' pair, got:${platform}, ${backend}`,
      fix: 'leave one of the two',
    },
  ]
}

function ensembleFaults({ name: model = '', ensemble_scheduling }: ModelConfig): readonly ConfigFault[] {
  return (ensemble_scheduling?.step ?? []).flatMap(({ model_name, model_version = -1 }, index) => {
    const field = `ensemble_scheduling.step[${index}]`
    return [
      ...(!isGiven(model_name)
        ? [
            {
              field: `${field}.model_name`,
              problem: `must specify 'model_name' in step ${index} of ensemble '${model}'`,
              fix: 'write the model that the step runs',
            },
          ]
        : []),
      ...(model_version < -1
        ? [
            {
              field: `${field}.model_version`,
              problem: `step ${index} of ensemble '${model}' has version ${model_version}`,
              fix: 'write -1 for the highest version that serves, or its number',
            },
          ]
        : []),
    ]
  })
}

function versionFaults({ name: model = '', version_policy: policy }: ModelConfig): readonly ConfigFault[] {
  if (policy?.latest?.num_versions === 0)
    return [
      {
        field: 'version_policy.latest.num_versions',
        problem: `the version policy of ${model} serves 0 versions`,
        fix: 'write how many, from 1',
      },
    ]
  const versions = policy?.specific?.versions
  if (versions === undefined || (versions.length > 0 && versions.every((version) => version > 0))) return []
  return [
    {
      field: 'version_policy.specific.versions',
      problem: `the version policy of ${model} names versions ${listed(versions)}`,
      fix: 'write numbers of version folders, from 1',
    },
  ]
}

/** What is said of requests at the load; the inputs may come from the model file. */
export function warmupFaults(config: ModelConfig): readonly ConfigFault[] {
  const { name: model = '', model_warmup, input } = config
  const names = [...input.map((known) => known.name), ...hiddenInputs(config)]
  return model_warmup.flatMap(({ name: warmup = '', inputs }, index) => [
    ...input
      .filter(({ name, optional }) => isGiven(name) && optional !== true && !(name in inputs))
      .map(({ name }) => ({
        field: `model_warmup[${index}].inputs`,
        problem: `warm-up "${warmup}" of ${model} has no input '${name}'`,
        fix: 'write its data_type and dims, and zero_data, random_data or a file',
      })),
    ...Object.entries(inputs).flatMap(([name, { data_type, dims, zero_data, random_data }]) => {
      const known = input.find((each) => each.name === name)
      const field = `model_warmup[${index}].inputs["${name}"]`
      const title = `warm-up "${warmup}" of ${model}`
      return [
        ...(zero_data === false || random_data === false
          ? [
              {
                field,
                problem: `${title} has ${zero_data === false ? 'zero_data' : 'random_data'}: false for '${name}', which says nothing`,
                fix: 'write zero_data: true, random_data: true or input_data_file',
              },
            ]
          : []),
        ...(input.length > 0 && !names.includes(name)
          ? [
              {
                field,
                problem: `${title} has an input '${name}' that the model has not`,
                fix: `write one of: ${names.join(', ')}`,
              },
            ]
          : []),
        ...(!isGiven(data_type)
          ? [
              {
                field: `${field}.data_type`,
                problem: `${title} must specify 'data_type' of '${name}'`,
                fix: 'write that of the input',
              },
            ]
          : []),
        ...(known !== undefined &&
        isGiven(known.data_type) &&
        isGiven(data_type) &&
        known.data_type !== data_type
          ? [
              {
                field: `${field}.data_type`,
                problem: `${title} has ${data_type} for '${name}', which is ${known.data_type}`,
                fix: 'write that of the input',
              },
            ]
          : []),
        ...(known !== undefined && known.reshape === undefined && !isShapeOf(dims, known.dims)
          ? [
              {
                field: `${field}.dims`,
                problem: `${title} has dims ${listed(dims)} for '${name}', which has ${listed(known.dims)}`,
                fix: 'write a size for each -1 of the input, and the others as they are; the batch is added',
              },
            ]
          : []),
        ...(dims.some((size) => size < 0)
          ? [
              {
                field: `${field}.dims`,
                problem: `${title} has dims ${listed(dims)} for '${name}'`,
                fix: 'write the size of each dimension',
              },
            ]
          : []),
      ]
    }),
  ])
}

function isShapeOf(sizes: readonly number[], dims: readonly number[]): boolean {
  return sizes.length === dims.length && sizes.every((size, axis) => dims[axis] === -1 || size === dims[axis])
}
