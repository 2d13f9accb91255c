import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { onnxRuntimeBackend } from '../../src/backends/onnxruntime/onnxruntime-backend.js'
import { toErrorRecord } from '../../src/errors.js'
import { silentLog } from '../../src/lifecycle/log.js'
import type { ModelConfig } from '../../src/repository/model-config.js'
import {
  modelFileIn,
  needsOfConfig,
  readDefinition,
  readModel,
  stepsOf,
} from '../../src/repository/model-definition.js'
import { backendOf } from '../../src/repository/supported-config.js'
import { openOnnxModel } from '../../src/repository/onnx-model.js'
import { outputLabels } from '../../src/repository/output-labels.js'
import { modelFolder } from '../../src/repository/repository-files.js'
import { comparable, recordedFolders, type RecordedFolder, writeFolder } from '../support/recorded-folders.js'
import { decided, decisions } from '../support/decided-readings.js'
import { tempDir } from '../support/temp-dir.js'

const onnxRuntime = onnxRuntimeBackend({ providers: ['cpu'], devices: [0], intraOpThreads: 1 })

async function attempt<T>(look: () => T | Promise<T>): Promise<unknown> {
  try {
    return await look()
  } catch (error) {
    return { error: toErrorRecord(error) }
  }
}

/** What a model file adds to a configuration. */
function added(config: ModelConfig, effective: ModelConfig): Partial<ModelConfig> {
  const own = new Map(Object.entries(config).map(([field, value]) => [field, JSON.stringify(value)]))
  return Object.fromEntries(
    Object.entries(effective).filter(([field, value]) => own.get(field) !== JSON.stringify(value)),
  )
}

/** What cameras, `gantry models` and the check of their model make of a folder. */
function seenByCameras(repository: string, { name }: RecordedFolder): Promise<unknown> {
  return attempt(async () => {
    const { backend, config, filesDir, versions, warnings } = readModel(repository, name)
    const open = () => {
      const model = openOnnxModel(readModel(repository, name))
      const { version, path, configuredMaxBatchSize, labels, labelsFrom } = model
      return { version, path, configuredMaxBatchSize, labels, labelsFrom, added: added(config, model.config) }
    }
    const opened = backend === 'onnxruntime' ? await attempt(open) : undefined
    return { backend, config, filesDir, versions, warnings, opened }
  })
}

/** What the model server makes of it, as far as it goes without running the model. */
function seenByClients(repository: string, { name, sent }: RecordedFolder): Promise<unknown> {
  return attempt(async () => {
    const definition = readDefinition(modelFolder(name, repository), sent)
    const { config, filesDir, versions, absentVersions, warnings, print, overridden } = definition
    const open = async (version: number) => {
      const versionDir = join(filesDir, String(version))
      const context = { name, version: String(version), config, versionDir, log: silentLog() }
      const model = await onnxRuntime.open(context)
      return {
        path: modelFileIn(versionDir, config),
        inputs: model.inputs,
        outputs: model.outputs,
        labels: outputLabels(model.config, filesDir, model.labels),
        added: added(config, model.config),
      }
    }
    const backend = backendOf(config)
    const opened =
      backend === 'onnxruntime'
        ? await Promise.all(versions.map((version) => attempt(() => open(version))))
        : await attempt(() => outputLabels(config, filesDir))
    return {
      ...{ backend, config, filesDir, versions, absentVersions, warnings, overridden, opened },
      ...{ steps: stepsOf(config), needs: needsOfConfig(config), print: [...print.keys()] },
    }
  })
}

describe('every folder of a model that the tests hold is read as it always was', () => {
  it.each(recordedFolders.map((folder, index) => ({ index, ...folder })))('$index: $name', async (folder) => {
    const repository = tempDir()
    writeFolder(folder, repository)
    const { cameras, clients } = decided(folder)
    if (cameras !== undefined)
      expect(comparable(await seenByCameras(repository, folder), repository)).toEqual(cameras)
    expect(comparable(await seenByClients(repository, folder), repository)).toEqual(clients)
  })

  it('holds folders for each meaning that was decided', () => {
    const used = new Set(recordedFolders.flatMap((folder) => decided(folder).by))
    expect(decisions.map(({ meaning }) => meaning).filter((meaning) => !used.has(meaning))).toEqual([])
  })
})
