import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { cpus } from 'node:os'
import { pipeline } from 'node:stream/promises'
import { onnxRuntimeVersion } from '../../backends/onnxruntime/providers.js'
import { byTrueName } from '../../lifecycle/system-limit.js'
import { modelConfigText } from '../../repository/model-config-text.js'
import type { OnnxModel } from '../../repository/onnx-model.js'

/**
 * What a search is of, a line each: measurements of one must not be taken for those of another.
 *
 * @param settings - that decide what is measured, as they were written.
 */
export async function subjectOf(
  { path, config, name }: OnnxModel,
  settings: Readonly<Record<string, unknown>>,
): Promise<string> {
  const written = Object.entries(settings)
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}: ${JSON.stringify(value)}`)
  return [
    `model: ${name}`,
    `file: ${await digestOf(path)}`,
    `configuration: ${digest(modelConfigText(config))}`,
    `processor: ${cpus()[0]?.model ?? ''}`,
    `onnxruntime-node: ${onnxRuntimeVersion()}`,
    ...written,
  ].join('\n')
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  try {
    await pipeline(createReadStream(path), hash)
  } catch (error) {
    throw byTrueName(`${path} cannot be read`, error)
  }
  return hash.digest('hex').slice(0, 16)
}
