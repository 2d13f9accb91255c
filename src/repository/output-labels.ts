import { basename, join } from 'node:path'
import { ModelConfigError } from './errors.js'
import { noLabel, readLabelsFile } from './labels.js'
import type { ModelOutput } from './model-config.js'
import { isThere } from '../lifecycle/system-limit.js'

type LabelledOutput = Pick<ModelOutput, 'name' | 'label_filename'> & Readonly<{ dims?: readonly number[] }>

/**
 * Class names by output: those of its `label_filename`. Where no output names a file, all have those of `labels.txt` beside the
 * configuration, else those of the model file, as for cameras.
 *
 * @param modelDir - `label_filename` and `labels.txt` lie here.
 * @param ofModelFile - class names in its metadata.
 * @throws ModelConfigError, ModelLabelsError
 */
export function outputLabels(
  { output }: Readonly<{ output: readonly LabelledOutput[] }>,
  modelDir: string,
  ofModelFile: readonly string[] = [],
): ReadonlyMap<string, readonly string[]> {
  const named = output.filter(({ label_filename = '' }) => label_filename !== '')
  if (named.length > 0)
    return new Map(
      named.map(({ name, label_filename = '' }) => [name, namedLabels(modelDir, name, label_filename)]),
    )
  const file = join(modelDir, 'labels.txt')
  const inFile = isThere(file) ? readLabelsFile(file) : undefined
  if (inFile === undefined && ofModelFile.length === 0) return new Map()
  return new Map(output.map((each) => [each.name, inFile ?? fitted(ofModelFile, each)]))
}

/** A map of names that begins with number 1 names the values of an output that begins with 0, where there is a name for each. */
function fitted(labels: readonly string[], { dims = [] }: LabelledOutput): readonly string[] {
  const values = dims.reduce((product, size) => product * size, 1)
  return labels[0] === noLabel && labels.length === values + 1 ? labels.slice(1) : labels
}

function namedLabels(modelDir: string, output: string, file: string): readonly string[] {
  if (basename(file) === file) return readLabelsFile(join(modelDir, file))
  throw new ModelConfigError(
    `label_filename "${file}" of output "${output}" is not a plain file name`,
    'Name a file in the model folder.',
  )
}
