import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The models that the client examples ask for: those of Triton's `docs/examples`, and stand-ins for the ones that are fetched or built.
 *
 * @returns `all`, and for the examples of model control as many as they count.
 */
export function exampleModels(
  work: string,
  server: string,
  python: string,
): Readonly<{ all: string; counted: Readonly<Record<7 | 8, string>> }> {
  const all = join(work, 'example-models')
  const counted = { 7: join(work, 'seven-models'), 8: join(work, 'eight-models') }
  if (existsSync(counted[8])) return { all, counted }
  rmSync(all, { recursive: true, force: true })
  cpSync(join(server, 'docs/examples/model_repository'), all, { recursive: true })
  rmSync(join(all, 'inception_onnx'), { recursive: true })
  mkdirSync(join(all, 'densenet_onnx/1'))
  execFileSync(python, [join(import.meta.dirname, 'densenet.py'), join(all, 'densenet_onnx/1/model.onnx')])
  cpSync(all, counted[7], { recursive: true })
  ownModel(all, 'custom_identity_int32', 'identity-model.mjs', identityConfig)
  cpSync(all, counted[8], { recursive: true })
  ownModel(all, 'picture_step', 'preprocess-model.mjs', pictureConfig)
  ownModel(all, 'classes_step', 'classes-model.mjs', classesConfig)
  ownModel(all, 'simple_string_dyna_sequence', 'dyna-sequence-model.mjs', stringSequenceConfig)
  const ensemble = join(all, 'preprocess_inception_ensemble')
  mkdirSync(join(ensemble, '1'), { recursive: true })
  writeFileSync(join(ensemble, 'config.pbtxt'), ensembleConfig)
  copyFileSync(join(all, 'densenet_onnx/densenet_labels.txt'), join(ensemble, 'labels.txt'))
  return { all, counted }
}

function ownModel(repository: string, name: string, code: string, config: string): void {
  mkdirSync(join(repository, name, '1'), { recursive: true })
  writeFileSync(join(repository, name, 'config.pbtxt'), `name: "${name}"\nbackend: "js"\n${config}`)
  copyFileSync(join(import.meta.dirname, code), join(repository, name, '1/model.mjs'))
}

const identityConfig = `max_batch_size: 1024
input { name: "INPUT0" data_type: TYPE_INT32 dims: [ -1 ] }
output { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ -1 ] }
`
const pictureConfig = `max_batch_size: 8
input { name: "INPUT" data_type: TYPE_STRING dims: [ 1 ] }
output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }
`
const classesConfig = `max_batch_size: 8
input { name: "INPUT" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }
output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 1000 ] }
`
const stringSequenceConfig = `max_batch_size: 8
sequence_batching {
  max_sequence_idle_microseconds: 10000000
  oldest { max_candidate_sequences: 1024 max_queue_delay_microseconds: 10000 }
  control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
  control_input { name: "END" control { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } }
  control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } }
  control_input { name: "CORRID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } }
}
input { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] }
output { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] }
`
const ensembleConfig = `name: "preprocess_inception_ensemble"
platform: "ensemble"
max_batch_size: 8
input { name: "INPUT" data_type: TYPE_STRING dims: [ 1 ] }
output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 1000 ] label_filename: "labels.txt" }
ensemble_scheduling {
  step {
    model_name: "picture_step" model_version: -1
    input_map { key: "INPUT" value: "INPUT" }
    output_map { key: "OUTPUT" value: "picture" }
  }
  step {
    model_name: "classes_step" model_version: -1
    input_map { key: "INPUT" value: "picture" }
    output_map { key: "OUTPUT" value: "OUTPUT" }
  }
}
`
