import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'

/** Where everything of one run lies. */
export type Workshop = Readonly<{
  /** Copy of Triton's `qa`, with the paths of its container replaced. */
  qa: string
  /** What Triton's suites find in `/data/inferenceserver/<version>`. */
  data: string
  /** In place of `/opt/tritonserver`. */
  opt: string
  /** First on PATH: `python`, `python3`. */
  bin: string
  python: string
}>

const version = 'qa'

/** Triton's makers of models: script, arguments, folder below the data. */
const makers: readonly (readonly [string, string, string])[] = [
  ['gen_qa_models.py', '--onnx', 'qa_model_repository'],
  ['gen_qa_identity_models.py', '--onnx', 'qa_identity_model_repository'],
  ['gen_qa_sequence_models.py', '--onnx', 'qa_sequence_model_repository'],
  ['gen_qa_sequence_models.py', '--onnx --variable', 'qa_variable_sequence_model_repository'],
  ['gen_qa_ort_scalar_models.py', '', 'qa_scalar_models'],
  ['gen_qa_models.py', '--ensemble', 'qa_ensemble_model_repository/qa_model_repository'],
]
/** Models of other frameworks that the suites of repositories copy: the same model as ONNX stands for them. */
const others = { libtorch: 'pytorch_libtorch', openvino: 'openvino', plan: 'tensorrt_plan' }

/** Lays out what the suites expect of the container that they were written for. */
export function prepare(work: string, server: string, python: string): Workshop {
  const shop: Workshop = {
    qa: join(work, 'qa'),
    data: join(work, 'data', version),
    opt: join(work, 'opt'),
    bin: join(work, 'bin'),
    python,
  }
  copySuites(shop, join(server, 'qa'))
  makeModels(shop)
  mkdirSync(join(shop.opt, 'bin'), { recursive: true })
  mkdirSync(shop.bin, { recursive: true })
  script(join(shop.opt, 'bin/tritonserver'), `exec ${join(import.meta.dirname, 'tritonserver.sh')} "$@"`)
  const recorded = `exec ${python} ${join(import.meta.dirname, 'record.py')} "$@"`
  for (const name of ['python', 'python3'])
    script(join(shop.bin, name), `case "$1" in *.py) ${recorded} ;; *) exec ${python} "$@" ;; esac`)
  return shop
}

export const envOf = (shop: Workshop): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: `${shop.bin}:${process.env.PATH ?? ''}`,
  PYTHONPATH: join(shop.qa, 'common'),
  NVIDIA_TRITON_SERVER_VERSION: version,
  TRITON_DIR: shop.opt,
})

function script(path: string, body: string): void {
  writeFileSync(path, `#!/bin/bash\n${body}\n`)
  chmodSync(path, 0o755)
}

/** Paths of their container are replaced. A step that fails ends no script: what is counted are the tests that follow. */
function copySuites(shop: Workshop, from: string): void {
  if (existsSync(shop.qa)) return
  cpSync(from, shop.qa, { recursive: true })
  const util = join(shop.qa, 'common/util.sh')
  const scripts = readdirSync(shop.qa).map((suite) => join(shop.qa, suite, 'test.sh'))
  for (const path of [util, ...scripts.filter((each) => existsSync(each))]) {
    const text = readFileSync(path, 'utf8')
      .replaceAll('/opt/tritonserver', shop.opt)
      .replaceAll('/data/inferenceserver/', `${join(shop.data, '..')}/`)
      .replaceAll(/^(\s*)set -e$/gm, '$1set +e')
      .replaceAll(/^(\s*)cat \$SERVER_LOG\n\s*exit 1$/gm, '$1true')
    writeFileSync(path, text)
  }
  // `kill 0`, where no server came up, would end the script and this process; cores of Node are of no use.
  const functions = ['kill() { [ "${*: -1}" = 0 ] || command kill "$@"; }', 'gdb_helper() { :; }']
  appendFileSync(util, functions.map((each) => `function ${each}\n`).join(''))
}

function makeModels({ qa, data, python }: Workshop): void {
  for (const [maker, flags, folder] of makers) {
    const models = join(data, folder)
    if (existsSync(models)) continue
    mkdirSync(models, { recursive: true })
    const args = [maker, ...flags.split(' ').filter(Boolean), `--models_dir=${models}`]
    const opset = flags.includes('--ensemble') ? [] : ['--onnx_opset=0']
    execFileSync(python, [...args, ...opset], {
      cwd: join(qa, 'common'),
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  }
  onCpu(data)
  const plain = join(data, 'qa_model_repository')
  for (const name of readdirSync(plain).filter((each) => each.startsWith('onnx_')))
    for (const other of Object.keys(others)) standForOther(plain, name, other)
}

/** Where there is no GPU. */
function onCpu(folder: string): void {
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((each) =>
    each.endsWith('config.pbtxt'),
  )) {
    const config = join(folder, path)
    writeFileSync(config, readFileSync(config, 'utf8').replaceAll('KIND_GPU', 'KIND_CPU'))
  }
}

function standForOther(models: string, onnx: string, other: string): void {
  const name = onnx.replace('onnx', other)
  const to = join(models, name)
  if (existsSync(to)) return
  cpSync(join(models, onnx), to, { recursive: true })
  const config = join(to, 'config.pbtxt')
  writeFileSync(config, readFileSync(config, 'utf8').replaceAll(`"${onnx}"`, `"${name}"`))
}
