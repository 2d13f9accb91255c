import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { checkRepository } from '../../../src/cli/checks/repository-check.js'
import type { ProviderState } from '../../../src/backends/onnxruntime/provider-look.js'
import type { Finding } from '../../../src/cli/findings.js'
import { loadPipeline } from '../../../src/config/load.js'
import { accepted, alsoRefused, tritonRefuses } from '../../support/configuration-forms.js'
import { echoOnnx } from '../../support/model-repository.js'
import { pictureEnsemble, redSteps } from '../../support/ensemble-text.js'
import { addModel, redDetector } from '../../support/onnx-models.js'
import { serveRepository } from '../../support/real-repository.js'
import { adder } from '../../support/sequence-models.js'
import { tempDir } from '../../support/temp-dir.js'

type Provider = 'cuda' | 'cpu'
/** A configuration of a model that gives back four floats, with files that lie beside it. */
type Case = Readonly<{
  text: string
  onnx?: Uint8Array
  files?: Readonly<Record<string, string | Uint8Array>>
}>

const echo = echoOnnx('float32', ['batch', 4])
const strings = echoOnnx('string', ['batch', 2])
const group = (inner: string) => `instance_group { ${inner} }`
const warmup = (type: string, dims: number, more: string) =>
  `max_batch_size: 4 model_warmup { name: "w" inputs { key: "in0" value { data_type: ${type} dims: ${dims} ${more} } } }`
const state = (data: string) =>
  `max_batch_size: 4 sequence_batching { state { input_name: "SUM_IN" output_name: "SUM_OUT" data_type: TYPE_FP32 dims: 1 initial_state { data_type: TYPE_FP32 dims: 1 name: "i" ${data} } } }`
const parameter = (key: string, value: string) =>
  `parameters { key: "${key}" value { string_value: "${value}" } }`
const claim = (inner: string) => group(`rate_limiter { resources { ${inner} } }`)
const picture = 'input { name: "image" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] }'

const cases: Readonly<Record<string, Case>> = {
  plain: { text: '' },
  gpu: { text: group('kind: KIND_GPU') },
  gpus: { text: group('gpus: [ 0, 0 ]') },
  auto: { text: group('count: 1') },
  gpu_and_cpu: { text: `${group('kind: KIND_CPU')} ${group('kind: KIND_GPU')}` },
  passive_gpu: { text: `${group('kind: KIND_CPU')} ${group('kind: KIND_GPU passive: true')}` },
  letterbox: { text: 'backend: "letterbox"' },
  letterbox_sized: { text: `backend: "letterbox" ${parameter('gantry.input_size', '64x64')}` },
  letterbox_wrong: { text: `backend: "letterbox" ${parameter('gantry.input_size', '64')}` },
  head: { text: 'backend: "detection_head"' },
  decode: { text: 'backend: "image_decode"' },
  decode_batched: { text: 'backend: "image_decode" max_batch_size: 4' },
  js: { text: 'backend: "js"' },
  remote: { text: 'backend: "kserve"' },
  remote_unknown: { text: `backend: "kserve" ${parameter('gantry.kserve_addresses', '127.0.0.1:1')}` },
  remote_listed: {
    text: `backend: "kserve" ${parameter('gantry.kserve_addresses', '127.0.0.1:1')} ${picture} output { name: "o" data_type: TYPE_FP32 dims: 1 }`,
  },
  threads: { text: parameter('intra_op_thread_count', 'many') },
  many_threads: { text: parameter('intra_op_thread_count', '9999') },
  execution_mode: { text: parameter('execution_mode', '7') },
  session_key: { text: parameter('session.disable_prepacking', 'maybe') },
  warm: {
    text: warmup('TYPE_FP32', 4, 'input_data_file: "raw"'),
    files: { 'warmup/raw': new Uint8Array(16) },
  },
  warm_short: {
    text: warmup('TYPE_FP32', 4, 'input_data_file: "raw"'),
    files: { 'warmup/raw': new Uint8Array(15) },
  },
  warm_without_file: { text: warmup('TYPE_FP32', 4, 'input_data_file: "raw"') },
  warm_strings: {
    text: warmup('TYPE_STRING', 2, 'input_data_file: "raw"'),
    onnx: strings,
    files: { 'warmup/raw': 'no strings at all' },
  },
  warm_not_text: {
    text: warmup('TYPE_STRING', 2, 'input_data_file: "raw"'),
    onnx: strings,
    files: { 'warmup/raw': Uint8Array.of(1, 0, 0, 0, 255, 0, 0, 0, 0) },
  },
  states: { text: state('zero_data: true'), onnx: adder },
  state_short: { text: state('data_file: "raw"'), onnx: adder, files: { 'initial_state/raw': '123' } },
  state_without_file: { text: state('data_file: "raw"'), onnx: adder },
  labels: {
    text: 'max_batch_size: 4 output { name: "out0" data_type: TYPE_FP32 dims: 4 label_filename: "none.txt" }',
  },
  file_name: { text: 'default_model_filename: "other.onnx"' },
  files_of: { text: parameter('gantry.files_of', 'plain') },
  files_of_nobody: { text: parameter('gantry.files_of', 'nobody') },
  version_missing: { text: 'version_policy { specific { versions: [ 1, 7 ] } }' },
  versions_missing: { text: 'version_policy { specific { versions: 7 } }' },
  optional: { text: 'max_batch_size: 4 input { name: "in0" data_type: TYPE_FP32 dims: 4 optional: true }' },
  claims: { text: claim('name: "A" count: 2') },
  claims_globally: { text: claim('name: "A" global: true count: 2') },
  half_a_batch: { text: 'max_batch_size: 4', onnx: echoOnnx('float32', [2, 4]) },
}

/** With every form of the other tests, so that both sides are seen to follow the same rules. */
const forms = Object.fromEntries(
  [...tritonRefuses, ...alsoRefused, ...accepted].map(({ name, text, onnx }) => [name, { text, onnx }]),
)

function repositoryOf(all: Readonly<Record<string, Case>>): string {
  const repository = tempDir()
  for (const [name, { text, onnx, files = {} }] of Object.entries(all)) {
    addModel(repository, name, { config: text, onnx: onnx ?? echo })
    for (const [file, content] of Object.entries(files)) {
      const path = join(repository, name, file)
      mkdirSync(join(path, '..'), { recursive: true })
      writeFileSync(path, content)
    }
  }
  return repository
}

type Settings = Readonly<Record<string, unknown>> & Readonly<{ models?: object }>

async function checked(
  repository: string,
  { models, ...settings }: Settings,
  states: readonly ProviderState[] = [],
): Promise<readonly Finding[]> {
  const file = join(tempDir(), 'pipeline.yaml')
  const pipeline = { apiVersion: 'gantry/v1', engines: 0, models: { repository, ...models }, ...settings }
  writeFileSync(file, stringify(pipeline))
  return checkRepository(loadPipeline(file, { env: {} }).config, states)
}

const of = (name: string) => `served model ${name}`

describe('check', () => {
  it.each<[Provider[], Readonly<Record<string, Case>>]>([
    [['cpu'], { ...cases, ...forms }],
    [['cuda', 'cpu'], cases],
  ])(
    'R27: refuses what a load refuses, and nothing else, with providers %j',
    { timeout: 120_000 },
    async (providers, all) => {
      const repository = repositoryOf(all)
      const findings = await checked(repository, { inference: { providers } })
      const index = (await serveRepository(repository, { providers })).index(false)
      const has = (name: string, state: Finding['state'], words = '') =>
        findings.some(
          (each) => each.subject === of(name) && each.state === state && each.detail.includes(words),
        )
      const loaded = Object.keys(all).filter((name) =>
        index.some((entry) => entry.name === name && entry.state === 'READY'),
      )
      const passed = Object.keys(all).filter((name) => !has(name, 'failed'))
      const unseen = passed.filter((name) => !loaded.includes(name) && has(name, 'warning', 'is seen then'))
      expect(passed.filter((name) => !unseen.includes(name))).toEqual(loaded)
      expect(unseen).toEqual(['remote_unknown'])
      expect(loaded).toEqual(expect.arrayContaining(['plain', 'auto', 'letterbox_sized', 'states', 'warm']))
    },
  )

  it('tells what has no effect here, and versions that are not there', async () => {
    const repository = repositoryOf({
      cached: { text: 'response_cache { enable: true }' },
      claims: cases.claims!,
      version_missing: cases.version_missing!,
    })
    mkdirSync(join(repository, 'version_missing', '01'))
    const warnings = (await checked(repository, { models: { cache: { sizeBytes: 0 } } })).filter(
      ({ state }) => state === 'warning',
    )
    expect(warnings.map(({ subject, detail }) => [subject, detail])).toEqual([
      [of('cached'), 'response_cache has no effect: models.cache keeps nothing'],
      [of('claims'), 'rate_limiter has no effect: modelServer.rateLimit.mode is off'],
      [
        of('version_missing'),
        "version_policy: version 7 is specified for model 'version_missing', but the version directory is not present",
      ],
      [
        of('version_missing'),
        'folder "01" is not served: a version is a number from 1, without zeros before it',
      ],
    ])
  })

  it('puts the ensemble of cameras together where there is no model server', async () => {
    const repository = tempDir()
    addModel(repository, 'red', { onnx: redDetector('uint8-nhwc') })
    const parameters = { 'gantry.attributes': 'colour' }
    addModel(repository, 'site', { config: pictureEnsemble({ steps: Object.values(redSteps), parameters }) })
    const alone = { engines: 1, modelServer: { enabled: false } }
    expect(await checked(repository, { ...alone, ensemble: 'site' })).toEqual([
      {
        subject: 'ensemble site',
        state: 'failed',
        detail: expect.stringContaining('colour') as string,
        fix: expect.any(String) as string,
      },
    ])
    expect(await checked(repository, { ...alone, ensemble: 'red' })).toEqual([])
  })

  it('refuses resources that are not there', async () => {
    const repository = repositoryOf({ claims: cases.claims!, claims_globally: cases.claims_globally! })
    const limited = (resources: object[]) =>
      checked(repository, { modelServer: { rateLimit: { mode: 'execution_count', resources } } })
    expect(await limited([])).toContainEqual(
      expect.objectContaining({
        subject: of('claims_globally'),
        detail: expect.stringContaining('"A" is present as both global and device-specific') as string,
      }),
    )
    expect(await limited([{ name: 'A', count: 1 }])).toContainEqual(
      expect.objectContaining({
        subject: of('claims'),
        detail: expect.stringContaining('"A" is limited to 1') as string,
      }),
    )
  })

  it('looks at the provider of a model that asks for a GPU, and says what only the card can tell', async () => {
    // It needs no library beside ONNX Runtime.
    const repository = repositoryOf({ gpus: cases.gpus! })
    const settings = { inference: { providers: ['webgpu', 'cpu'] } }
    const state = (runs: boolean): ProviderState => ({
      provider: 'webgpu',
      state: runs ? 'runs' : 'fails',
      reason: runs ? '' : 'no card',
    })
    expect(await checked(repository, settings, [state(false)])).toContainEqual(
      expect.objectContaining({
        subject: of('gpus'),
        state: 'failed',
        detail: 'instance_group has kind KIND_GPU, but no provider runs on a GPU here: webgpu: no card',
      }),
    )
    expect(await checked(repository, settings, [state(true)])).toEqual([
      expect.objectContaining({ subject: 'served models', state: 'ok' }),
      expect.objectContaining({
        subject: of('gpus'),
        state: 'warning',
        detail: 'instance_group asks for a GPU: whether the card takes the model is seen at its load',
      }),
    ])
  })
})
