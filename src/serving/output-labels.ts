import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ModelConfigError } from '../inference/errors.js'
import { readLabelsFile } from '../inference/labels.js'
import type { ModelConfig } from '../inference/model-config.js'

/**
 * Class names by output: those of its `label_filename`. Where no output names a file, all have those of `labels.txt` beside the
 * configuration, else those of the model file, as for cameras.
 *
 * @param modelDir - `label_filename` and `labels.txt` lie here.
 * @param ofModelFile - class names in its metadata.
 * @throws ModelConfigError, ModelLabelsError
 */
export function outputLabels(
  { output }: ModelConfig,
  modelDir: string,
  ofModelFile: readonly string[] = [],
): ReadonlyMap<string, readonly string[]> {
  const named = output.filter(({ label_filename = '' }) => label_filename !== '')
  if (named.length > 0)
    return new Map(
      named.map(({ name, label_filename = '' }) => [name, namedLabels(modelDir, name, label_filename)]),
    )
  const file = join(modelDir, 'labels.txt')
  const labels = existsSync(file) ? readLabelsFile(file) : ofModelFile
  return new Map(labels.length === 0 ? [] : output.map(({ name }) => [name, labels]))
}

function namedLabels(modelDir: string, output: string, file: string): readonly string[] {
  if (basename(file) === file) return readLabelsFile(join(modelDir, file))
  throw new ModelConfigError(
    `label_filename "${file}" of output "${output}" is not a plain file name`,
    'Name a file in the model folder.',
  )
}
