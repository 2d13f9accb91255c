import { join } from 'node:path'
import { repositoriesOf } from '../../config/load.js'
import type { PipelineConfig } from '../../config/pipeline.js'
import { planDetector } from '../../detector/detector-plan.js'
import { type CameraShapes, noCameraShapes } from '../../detector/input-size.js'
import { isBuiltInStep } from '../../ensemble/built-in-steps.js'
import { findCameraModel } from '../../ensemble/camera-model.js'
import { toErrorRecord } from '../../errors.js'
import { ModelConfigError, ModelNotFoundError } from '../../repository/errors.js'
import {
  repositoriesFrom,
  type RepositoryScan,
  repositoryWith,
  scanRepositories,
} from '../../repository/repository-files.js'
import { type ModelConfig, parameterOf } from '../../repository/model-config.js'
import { deviceOf, gpuIsInstalled } from '../../backends/onnxruntime/providers.js'
import {
  distinctRepositories,
  repositoryHint,
  unreadableOf,
  unreadableText,
  type UnreadableRepositories,
} from '../../repository/repository-folder.js'
import { backendOf, checkCompleted } from '../../repository/supported-config.js'
import { silentLog } from '../../lifecycle/log.js'
import { BackendRegistry } from '../../serving/backend-registry.js'
import { JsBackend } from '../../backends/js/js-backend.js'
import { kserveSettings } from '../../backends/kserve/kserve-settings.js'
import { onnxRuntimeBackend } from '../../backends/onnxruntime/onnxruntime-backend.js'
import { loadWarnings } from '../../serving/load-warnings.js'
import { createEnsembleModel } from '../../ensemble/create-ensemble-model.js'
import type { LoadedModel } from '../../runtime/loaded-model.js'
import { outputLabels } from '../../repository/output-labels.js'
import { loadOrder } from '../../serving/repository/load-order.js'
import {
  type ModelDefinition,
  needsOfConfig,
  onlyForGpus,
  readDefinition,
  stepsOf,
} from '../../repository/model-definition.js'
import { keepsAnswers } from '../../serving/response-cache/create-response-cache.js'
import { instanceClaims } from '../../runtime/rate-limit/claims.js'
import { type RateLimiter, rateLimiterOf } from '../../runtime/rate-limit/rate-limiter.js'
import { implicitState } from '../../runtime/sequence-state.js'
import { warmUpRequests } from '../../runtime/warm-up.js'
import type { SizePx } from '../../vision/letterbox.js'
import type { Finding } from '../findings.js'
import { DescribedModel } from './described-model.js'
import { devicesToTry } from './provider-check.js'
import type { ProviderState } from '../../backends/onnxruntime/provider-look.js'

/**
 * Whether the folders of models can be read, and every model that the service would load for API clients could be loaded.
 *
 * @param states - of the providers, as far as they were looked at.
 * @param shapes - of the cameras, as far as they are known.
 */
export async function checkRepository(
  config: PipelineConfig,
  states: readonly ProviderState[],
  shapes = noCameraShapes,
): Promise<Finding[]> {
  const folders = repositoriesInUse(config)
  const unreadable = await unreadableOf(folders)
  const scan = scanRepositories(
    distinctRepositories(folders.filter((folder) => !unreadable.has(folder))),
    () => undefined,
    config.models.configName,
  )
  return [
    ...[...unreadable].map(([folder, reason]): Finding => ({
      subject: `repository ${folder}`,
      state: 'failed',
      detail: unreadableText(folder, reason),
      fix: repositoryHint,
    })),
    ...emptyOnes(folders, unreadable, scan),
    ...(config.modelServer.enabled
      ? await checkServed(config, scan, states, shapes)
      : await checkSteps(config, states, shapes)),
  ]
}

/** Whether the ensemble of the cameras can be put together, where no model server is asked the same. Its models are looked at elsewhere. */
async function checkSteps(
  config: PipelineConfig,
  states: readonly ProviderState[],
  shapes: CameraShapes,
): Promise<Finding[]> {
  const { engines, ensemble, models } = config
  const folders = repositoriesOf(config)
  const unreadable = await unreadableOf(folders)
  const readable = folders.filter((folder) => !unreadable.has(folder))
  const scan = scanRepositories(distinctRepositories(readable), () => undefined, models.configName)
  if (engines === 0 || !scan.folders.has(ensemble)) return []
  const alone = { ...config, models: { ...models, control: 'explicit' as const, load: [ensemble] } }
  return (await checkServed(alone, scan, states, shapes))
    .filter(({ subject, state }) => subject === subjectOf(ensemble) && state === 'failed')
    .map((finding) => ({ ...finding, subject: `ensemble ${ensemble}` }))
}

/** Whether the cameras' model can be looked for. */
export async function canLookForModel(config: PipelineConfig): Promise<boolean> {
  return (await unreadableOf([repositoryWith(repositoriesOf(config), config.ensemble)])).size === 0
}

function repositoriesInUse(config: PipelineConfig): readonly string[] {
  const folders = repositoriesOf(config)
  if (config.modelServer.enabled) return folders
  return config.engines > 0 ? [repositoryWith(folders, config.ensemble)] : []
}

function emptyOnes(
  folders: readonly string[],
  unreadable: UnreadableRepositories,
  scan: RepositoryScan,
): Finding[] {
  const filled = new Set([...scan.folders.values()].map(({ repository }) => repository))
  if (scan.ambiguous.size > 0) return []
  return distinctRepositories(folders.filter((folder) => !unreadable.has(folder)))
    .filter((folder) => !filled.has(folder))
    .map((folder) => ({
      subject: `repository ${folder}`,
      state: 'warning',
      detail: 'it has no models',
      fix: 'put models there, or let clients send them (models.control: explicit)',
    }))
}

async function checkServed(
  config: PipelineConfig,
  scan: RepositoryScan,
  states: readonly ProviderState[],
  shapes: CameraShapes,
): Promise<Finding[]> {
  const inputSizes = sizesOfCameras(config, shapes)
  const { control, load } = config.models
  const isAll = control !== 'explicit' || load.includes('*')
  const wanted = isAll ? [...scan.folders.keys(), ...scan.ambiguous.keys()].sort() : [...load]
  const backends = new BackendRegistry([
    onnxRuntimeBackend({ ...config.inference, devices: await devicesToTry(config.inference) }),
    new JsBackend(config.models.allowJsBackends),
  ])
  const rateLimiter = rateLimiterOf(config.modelServer.rateLimit)
  const definitions = new Map<string, ModelDefinition>()
  const described = new Map<string, readonly LoadedModel[]>()
  /** What the model files say that is not understood, by model. */
  const notes = new Map<string, string>()
  const findings: Finding[] = []
  const seen = new Set<string>()
  const attempt = async (name: string, look: () => Promise<void> | void) => {
    try {
      await look()
    } catch (error) {
      const { message, hint } = toErrorRecord(error)
      findings.push({ subject: subjectOf(name), state: 'failed', detail: message, fix: hint })
    }
  }
  // The list grows by what ensembles need.
  for (const name of wanted) {
    if (seen.has(name)) continue
    seen.add(name)
    await attempt(name, () => {
      const definition = definitionOf(name, scan)
      definitions.set(name, definition)
      wanted.push(...needsOfConfig(definition.config).filter((need) => scan.folders.has(need)))
    })
  }
  if (!gpuIsInstalled(config.inference.providers))
    for (const name of onlyForGpus([...definitions.values()], isAll ? [] : load))
      // It is not loaded here.
      if (definitions.delete(name)) seen.delete(name)
  for (const [name, definition] of definitions)
    await attempt(name, async () => {
      const models = await tryOpen(definition, backends, (note) => notes.set(name, note))
      for (const model of models) checkPlace(model.config, states, rateLimiter)
      if (models.length > 0) described.set(name, models)
      findings.push(...missingSteps(name, needsOfConfig(definition.config), scan))
    })
  const needs = new Map([...definitions].map(([name, { config: own }]) => [name, needsOfConfig(own)]))
  const { order, circular } = loadOrder(needs)
  const isBroken = (name: string) => findings.some(({ subject }) => subject === subjectOf(name))
  for (const name of order) {
    const definition = definitions.get(name)
    if (definition === undefined) continue
    if (backendOf(definition.config) !== 'ensemble' || isBroken(name)) continue
    await attempt(name, async () => {
      const broken = stepsOf(definition.config).find(isBroken)
      if (broken !== undefined) throw brokenStep(name, broken)
      const ensemble = await tryEnsemble(definition, described, inputSizes)
      if (ensemble !== undefined) described.set(name, [ensemble])
    })
  }
  for (const [name, circle] of circular)
    findings.push({
      subject: subjectOf(name),
      state: 'failed',
      detail: `circular dependency between ensembles: ${circle}`,
      fix: 'take one of the steps out',
    })
  const settings = { keepsAnswers: keepsAnswers(config.models.cache), limitsRates: rateLimiter !== undefined }
  const warnings = [...definitions.values()].flatMap(({ name, config: own, warnings: ofConfig }) => {
    const ofFile = notes.get(name)
    const all = [...ofConfig, ...loadWarnings(own, settings), ...(ofFile === undefined ? [] : [ofFile])]
    return [...all, ...(isBroken(name) ? [] : seenAtLoad(own))].map((detail): Finding => ({
      subject: subjectOf(name),
      state: 'warning',
      detail,
    }))
  })
  const broken = new Set(findings.map(({ subject }) => subject))
  const good = [...definitions.keys()].filter((name) => !broken.has(subjectOf(name)))
  const summary: Finding = {
    subject: 'served models',
    state: broken.size > 0 ? 'failed' : 'ok',
    detail: `${good.length} of ${seen.size} can be loaded${good.length > 0 ? `: ${good.join(' ')}` : ''}`,
  }
  return [...(seen.size > 0 ? [summary] : []), ...findings, ...warnings]
}

/** What cameras run a model at that leaves its size open: ensembles of clients run it alike. */
function sizesOfCameras(config: PipelineConfig, shapes: CameraShapes): ReadonlyMap<string, SizePx> {
  const { engines, ensemble } = config
  if (engines === 0) return new Map()
  try {
    const { detector, gpuDetector } = findCameraModel(
      repositoriesFrom(repositoriesOf(config), ensemble),
      ensemble,
    )
    return new Map(
      [detector, gpuDetector].flatMap((model) =>
        model === undefined ? [] : [[model.name, planDetector(model, shapes).input.size]],
      ),
    )
  } catch {
    // What is wrong with it is told of the cameras' model.
    return new Map()
  }
}

function subjectOf(name: string): string {
  return `served model ${name}`
}

/** @throws ModelNotFoundError, ModelConfigError */
function definitionOf(name: string, scan: RepositoryScan): ModelDefinition {
  const ambiguous = scan.ambiguous.get(name)
  if (ambiguous !== undefined)
    throw new ModelNotFoundError(
      ambiguous,
      'Keep the model in one repository, or give one of them another name.',
    )
  const folder = scan.folders.get(name)
  if (folder === undefined)
    throw new ModelNotFoundError(
      `model '${name}' is in no repository, but models.load names it`,
      'Put the model into a repository, or take the name out.',
    )
  const definition = readDefinition(folder)
  if (definition.versions.length > 0) return definition
  throw new ModelNotFoundError(
    `model '${name}' has no version to serve`,
    `Put the model into a folder named by a number, such as ${join(folder.dir, '1')}, that version_policy does not leave out.`,
  )
}

function wantsGpu({ instance_group }: ModelConfig): boolean {
  return instance_group.some(
    ({ kind, gpus, passive }) => passive !== true && (kind === 'KIND_GPU' || gpus.length > 0),
  )
}

/**
 * That there is a place for every instance, and what it needs to run.
 *
 * @throws ModelConfigError
 */
function checkPlace(
  config: ModelConfig,
  states: readonly ProviderState[],
  rateLimiter: RateLimiter | undefined,
): void {
  rateLimiter?.register(instanceClaims(config))
  const onGpu = states.filter(({ provider }) => deviceOf(provider) === 'gpu')
  if (!wantsGpu(config) || onGpu.length === 0 || onGpu.some(({ state }) => state === 'runs')) return
  throw new ModelConfigError(
    `instance_group has kind KIND_GPU, but no provider runs on a GPU here: ${onGpu.map(({ provider, reason }) => `${provider}: ${reason}`).join('; ')}`,
    'Remedy that, or write KIND_CPU.',
  )
}

/** What a load finds out, and a look does not. */
function seenAtLoad(config: ModelConfig): readonly string[] {
  const backend = backendOf(config)
  const addresses = parameterOf(config, 'gantry.kserve_addresses') ?? ''
  return [
    ...(backend === 'onnxruntime' && wantsGpu(config)
      ? ['instance_group asks for a GPU: whether the card takes the model is seen at its load']
      : []),
    ...(backend === 'kserve' && (config.input.length === 0 || config.output.length === 0)
      ? [`input and output are asked of ${addresses} at the load: whether it answers is seen then`]
      : []),
    ...(backend === 'js' ? ['its code is run at the load: whether it starts is seen then'] : []),
  ]
}

function missingSteps(name: string, steps: readonly string[], scan: RepositoryScan): Finding[] {
  return steps
    .filter((step) => !scan.folders.has(step) && !isBuiltInStep(step))
    .map((step) => ({
      subject: subjectOf(name),
      state: 'failed',
      detail: `the ensemble runs model '${step}', which is in no repository`,
      fix: 'put the model there, or correct model_name',
    }))
}

function brokenStep(name: string, step: string): ModelConfigError {
  return new ModelConfigError(
    `ensemble "${name}" runs model '${step}', which cannot be loaded`,
    `Correct '${step}': what is wrong with it is told here too.`,
  )
}

/**
 * All of a load that needs neither a run of the model nor another server. Returns the versions as far as their tensors are known so:
 * none of ensembles, which need the models of their steps, and of models on other servers.
 */
async function tryOpen(
  definition: ModelDefinition,
  backends: BackendRegistry,
  note: (problem: string) => void,
): Promise<readonly DescribedModel[]> {
  const { name, config, filesDir } = definition
  const backend = backendOf(config)
  if (backend === 'ensemble') {
    outputLabels(config, filesDir)
    return []
  }
  const models: DescribedModel[] = []
  for (const version of definition.versions) {
    const versionDir = join(filesDir, String(version))
    const context = { name, version: String(version), config, versionDir, log: silentLog() }
    if (backend === 'kserve') {
      kserveSettings(context)
      continue
    }
    const opened = await backends.find(backend, name).open(context)
    try {
      checkCompleted(opened.config, name)
      const labels = outputLabels(opened.config, filesDir, opened.labels)
      if (labels.size === 0 && opened.labelsProblem !== undefined) note(opened.labelsProblem)
      await warmUpRequests(opened.config, filesDir)
      await implicitState(opened.config, filesDir)
      models.push(new DescribedModel(name, String(version), opened, labels))
    } finally {
      await opened.close()
    }
  }
  return models
}

/**
 * Puts an ensemble together as a load does. Returns nothing where a step is not known here, as it runs on another server.
 *
 * @throws ModelConfigError naming step and tensor, ModelInvalidError, HeadUnknownError
 */
async function tryEnsemble(
  { name, config, versions, filesDir }: ModelDefinition,
  described: ReadonlyMap<string, readonly LoadedModel[]>,
  inputSizes: ReadonlyMap<string, SizePx>,
): Promise<LoadedModel | undefined> {
  const version = String(versions.at(-1))
  if (!stepsOf(config).every((step) => described.has(step) || isBuiltInStep(step))) return undefined
  const definition = {
    name,
    version,
    config,
    versionDir: join(filesDir, version),
    labels: outputLabels(config, filesDir),
  }
  return createEnsembleModel(definition, {
    inputSizes,
    find: (step, wanted) => {
      const models = described.get(step) ?? []
      return wanted === -1 ? models.at(-1) : models.find((model) => model.version === String(wanted))
    },
    serve: (opened, context) =>
      Promise.resolve(new DescribedModel(context.name, context.version, opened, new Map())),
    log: silentLog(),
  })
}
