import { copyFileSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { byTrueName } from '../../lifecycle/system-limit.js'
import { ModelConfigError } from '../../repository/errors.js'
import type { ModelConfig } from '../../repository/model-config.js'
import { modelConfigText } from '../../repository/model-config-text.js'
import type { ModelDraft } from './model-draft.js'

/** Where the transformed model goes: an entry of a repository, or a file. */
export type TransformTarget =
  Readonly<{ kind: 'entry'; repository: string; name: string }> | Readonly<{ kind: 'file'; path: string }>

export function targetPath(target: TransformTarget): string {
  return target.kind === 'file' ? target.path : join(target.repository, target.name)
}

/** @throws ModelConfigError where something is there already */
export function checkTarget(target: TransformTarget): void {
  const path = targetPath(target)
  if (existsSync(path)) throw taken(path)
}

function taken(path: string): ModelConfigError {
  return new ModelConfigError(`${path} is there already`, 'Remove it, or choose another --name or --out.')
}

/**
 * Writes a model where it is to be; it appears when it is complete, or not at all.
 *
 * @throws ModelConfigError where something has come there meanwhile; SystemLimitError if the disk is full or may not be written to
 */
export function writeModel(draft: ModelDraft, target: TransformTarget): void {
  const path = targetPath(target)
  let partial: string | undefined
  try {
    mkdirSync(dirname(path), { recursive: true })
    partial = mkdtempSync(join(dirname(path), `.${basename(path)}-`))
    const ready = join(partial, 'model')
    if (target.kind === 'file') copyFileSync(draft.path, ready)
    else fill(ready, target.name, draft)
    if (existsSync(path)) throw taken(path)
    renameSync(ready, path)
  } catch (error) {
    throw byTrueName(`${path} cannot be written`, error)
  } finally {
    if (partial !== undefined) rmSync(partial, { recursive: true, force: true })
  }
}

function fill(folder: string, name: string, { path, config, labels, labelsFrom }: ModelDraft): void {
  mkdirSync(join(folder, '1'), { recursive: true })
  copyFileSync(path, join(folder, '1', 'model.onnx'))
  const inFile = labels === undefined || labelsFrom === 'model metadata'
  if (!inFile) writeFileSync(join(folder, 'labels.txt'), `${labels.join('\n')}\n`)
  writeFileSync(join(folder, 'config.pbtxt'), modelConfigText(entryConfig(config, name, !inFile)))
}

/** Without what is of the original's folder: files it borrows, names of its files, versions it serves. */
function entryConfig(config: ModelConfig, name: string, labelled: boolean): ModelConfig {
  const { 'gantry.files_of': _, 'gantry.gpu_model': __, ...parameters } = config.parameters
  const { default_model_filename: ___, version_policy: ____, ...rest } = config
  const [first, ...others] = config.output
  const output =
    first === undefined ? [] : [labelled ? { ...first, label_filename: 'labels.txt' } : first, ...others]
  return { ...rest, name, parameters, output }
}
