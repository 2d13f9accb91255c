import { copyFileSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { byTrueName } from '../../lifecycle/system-limit.js'
import { ModelConfigError } from '../../repository/errors.js'
import type { ModelConfig } from '../../repository/model-config.js'
import { modelConfigText } from '../../repository/model-config-text.js'
import { readModel } from '../../repository/model-definition.js'
import { openOnnxModel } from '../../repository/onnx-model.js'
import { writeModel } from '../transform/write-model.js'
import { configured } from './configured.js'
import type { Configuration } from './search-space.js'

/** Where the best configuration goes. */
export type ResultPlace = Readonly<{
  repository: string
  name: string
  /** An ensemble that the model is a step of: another one like it gets the new model. */
  ensemble?: Readonly<{ name: string; config: ModelConfig; dir: string; detector: string }>
}>

/** Entries that are written. */
export type WrittenResult = Readonly<{ name: string; path: string; ensemble?: string }>

/** Parameters of an ensemble that name other models for a GPU: what was searched is this one. */
const otherModels = ['gantry.gpu_model', 'gantry.float16_model']

/** @throws ModelConfigError where something of that name is there already */
export function checkResultPlace({ repository, name, ensemble }: ResultPlace): void {
  for (const each of ensemble === undefined ? [name] : [name, ensembleName(name, ensemble)]) {
    const path = join(repository, each)
    if (existsSync(path))
      throw new ModelConfigError(`${path} is there already`, 'Remove it, or choose another --name or --out.')
  }
}

/** Beside the detector, whose name is the new one's. */
function ensembleName(name: string, { name: before }: NonNullable<ResultPlace['ensemble']>): string {
  return `${before}_${name}`
}

/**
 * Writes the model that was found to be the best with its configuration, as an entry of a repository.
 *
 * @param forms - repository of the forms.
 * @param entry - of the form.
 * @throws ModelConfigError where something has come there meanwhile; SystemLimitError
 */
export function writeResult(
  forms: string,
  entry: string,
  configuration: Configuration,
  place: ResultPlace,
): WrittenResult {
  const { repository, name, ensemble } = place
  const model = openOnnxModel(readModel([forms], entry))
  const config = configured(model.config, configuration)
  const { 'gantry.float16_model': _, ...parameters } = config.parameters
  writeModel({ ...model, config: { ...config, parameters } }, { kind: 'entry', repository, name })
  const path = join(repository, name)
  if (ensemble === undefined) return { name, path }
  const own = ensembleName(name, ensemble)
  writeEnsemble(
    join(repository, own),
    withDetector(ensemble.config, own, ensemble.detector, name),
    ensemble.dir,
  )
  return { name, path, ensemble: own }
}

function withDetector(config: ModelConfig, name: string, before: string, after: string): ModelConfig {
  const { ensemble_scheduling: scheduling, parameters, ...rest } = config
  return {
    ...rest,
    name,
    parameters: Object.fromEntries(Object.entries(parameters).filter(([key]) => !otherModels.includes(key))),
    ...(scheduling && {
      ensemble_scheduling: {
        ...scheduling,
        step: scheduling.step.map((step) =>
          step.model_name === before ? { ...step, model_name: after, model_version: -1 } : step,
        ),
      },
    }),
  }
}

/** It appears when it is complete, or not at all. */
function writeEnsemble(path: string, config: ModelConfig, before: string): void {
  let partial: string | undefined
  try {
    // What a killed process leaves is no model of the repository.
    partial = mkdtempSync(join(dirname(path), `.${basename(path)}-`))
    const ready = join(partial, 'model')
    mkdirSync(join(ready, '1'), { recursive: true })
    writeFileSync(join(ready, 'config.pbtxt'), modelConfigText(config))
    for (const { label_filename: file = '' } of config.output)
      if (file !== '') copyFileSync(join(before, file), join(ready, file))
    renameSync(ready, path)
  } catch (error) {
    throw byTrueName(`${path} cannot be written`, error)
  } finally {
    if (partial !== undefined) rmSync(partial, { recursive: true, force: true })
  }
}
