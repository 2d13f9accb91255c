import { join } from 'node:path'
import { noLabel, readLabelsFile } from './labels.js'
import type { ModelOutput } from './model-config.js'
import { isThere } from '../lifecycle/system-limit.js'

type LabelledOutput = Pick<ModelOutput, 'name' | 'label_filename'> & Readonly<{ dims?: readonly number[] }>

/** Path of the file that names the classes of an output, by output: its `label_filename`; where no output names one, `labels.txt`. */
export function labelFiles(
  { output }: Readonly<{ output: readonly LabelledOutput[] }>,
  modelDir: string,
): ReadonlyMap<string, string> {
  const named = output.flatMap(({ name, label_filename = '' }) =>
    label_filename === '' ? [] : [[name, join(modelDir, label_filename)] as const],
  )
  if (named.length > 0) return new Map(named)
  const usual = join(modelDir, 'labels.txt')
  return isThere(usual) ? new Map(output.map(({ name }) => [name, usual])) : new Map()
}

/**
 * Class names by output: those of its `label_filename`. Where no output names a file, all have those of `labels.txt` beside the
 * configuration, else those of the model file, as for cameras.
 *
 * @param modelDir - `label_filename` and `labels.txt` lie here.
 * @param ofModelFile - class names in its metadata.
 * @throws ModelLabelsError
 */
export function outputLabels(
  { output }: Readonly<{ output: readonly LabelledOutput[] }>,
  modelDir: string,
  ofModelFile: readonly string[] = [],
): ReadonlyMap<string, readonly string[]> {
  const files = labelFiles({ output }, modelDir)
  if (files.size > 0) {
    const read = new Map([...new Set(files.values())].map((file) => [file, readLabelsFile(file)]))
    return new Map([...files].map(([name, file]) => [name, read.get(file) ?? []]))
  }
  if (ofModelFile.length === 0) return new Map()
  return new Map(output.map((each) => [each.name, fitted(ofModelFile, each)]))
}

/** A map of names that begins with number 1 names the values of an output that begins with 0, where there is a name for each. */
function fitted(labels: readonly string[], { dims = [] }: LabelledOutput): readonly string[] {
  const values = dims.reduce((product, size) => product * size, 1)
  return labels[0] === noLabel && labels.length === values + 1 ? labels.slice(1) : labels
}
