import { statSync } from 'node:fs'
import { readTextFile } from '../config/text-file.js'
import { byTrueName, isSystemLimit } from '../lifecycle/system-limit.js'
import { type ClassNames, parseClassNames } from './class-names.js'
import { ModelLabelsError } from './errors.js'
import { unescapedText } from './python-literal.js'

const maxLabelsBytes = 1024 * 1024

/** Stands in a list for a number that no class has. */
export const noLabel = 'N/A'

/**
 * Reads a labels file: one label per line, a list or map in JSON, or a label map of TensorFlow's detection API
 * (`item { id: 1 name: "helmet" }`). {@link noLabel} stands for numbers that a map leaves out.
 *
 * @throws ModelLabelsError `GANTRY_MODEL_LABELS` if it is not there, is empty, is not UTF-8, or has an empty line in between; SystemLimitError.
 */
export function readLabelsFile(path: string): readonly string[] {
  const text = readText(path)
  if (text.includes('\uFFFD'))
    throw new ModelLabelsError(
      `${path}:${text.slice(0, text.indexOf('\uFFFD')).split('\n').length}: it is not UTF-8`,
      'Save the file as UTF-8.',
    )
  if (/^\s*(?:#.*\s+)*item\s*:?\s*\{/.test(text)) return labelsOfMap(text, path)
  const lines = text.split(/\r?\n/)
  if (/^\s*[[{]/.test(text)) {
    const names = parseClassNames(text)
    if (typeof names !== 'string') return withoutHoles(names)
    if (lines.length === 1)
      throw new ModelLabelsError(`${path} is not understood: ${names}`, 'Write one label on each line.')
  }
  while (lines.at(-1)?.trim() === '') lines.pop()
  const empty = lines.findIndex((line) => line.trim() === '')
  if (empty >= 0)
    throw new ModelLabelsError(
      `${path}:${empty + 1}: empty line`,
      'Write one label on each line, in the order of the classes: "background" for what is none, N/A for a class the model lacks.',
    )
  if (lines.length === 0)
    throw new ModelLabelsError(
      `${path} is empty`,
      'Write one label on each line, in the order of the classes.',
    )
  return lines.map((line) => line.trim())
}

const quoted = /'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"/

function labelsOfMap(text: string, path: string): readonly string[] {
  const names: string[] = []
  for (const [, item = ''] of text.matchAll(/item\s*:?\s*\{([^}]*)\}/g)) {
    const id = /\bid\s*:\s*(\d{1,5})\b/.exec(item)?.[1]
    const [, single, double] =
      new RegExp(`\\bdisplay_name\\s*:\\s*(?:${quoted.source})`).exec(item) ??
      new RegExp(`\\bname\\s*:\\s*(?:${quoted.source})`).exec(item) ??
      []
    const name = unescapedText(single ?? double ?? '').trim()
    if (id === undefined || name === '' || names[Number(id)] !== undefined)
      throw new ModelLabelsError(
        `${path}: a label map whose item has ${id === undefined ? 'no id' : name === '' ? `no name for id ${id}` : `id ${id} twice`}`,
        'Write item { id: 1 name: "helmet" } for each class, or one label on each line.',
      )
    names[Number(id)] = name
  }
  return withoutHoles(names)
}

function withoutHoles(names: ClassNames): readonly string[] {
  return Array.from(names, (name) => (name === undefined || name === '' ? noLabel : name))
}

function readText(path: string): string {
  try {
    if (statSync(path).size > maxLabelsBytes) throw new Error(`more than ${maxLabelsBytes} bytes`)
    return readTextFile(path)
  } catch (error) {
    if (isSystemLimit(error)) throw byTrueName(`cannot read labels ${path}`, error)
    throw new ModelLabelsError(
      `cannot read labels ${path}: ${error instanceof Error ? error.message : String(error)}`,
      'Put the file into the model folder, or correct label_filename in config.pbtxt.',
      error,
    )
  }
}

/** Entries of a model's metadata that exporters write class names into. */
const metadataKeys = ['names', 'labels', 'classes', 'class_names', 'categories'] as const

/** Class names of a model file, or why what stands in their place is not understood. */
export type MetadataLabels = Readonly<{ labels?: readonly string[]; problem?: string }>

/**
 * Class names out of the metadata of a model: a map from number to name or a list, in Python, JSON or YAML, lines, or names with commas.
 * {@link noLabel} stands for numbers that a map leaves out.
 */
export function labelsOfMetadata(metadata: Readonly<Record<string, string>>): MetadataLabels {
  let problem: string | undefined
  for (const key of metadataKeys) {
    const text = metadata[key]
    // A number is how many there are.
    if (text === undefined || text.trim() === '' || (key !== 'names' && /^\s*\d+\s*$/.test(text))) continue
    const names = parseClassNames(text)
    if (typeof names !== 'string' && names.some((name) => name !== undefined && name !== ''))
      return { labels: withoutHoles(names) }
    const why = typeof names === 'string' ? names : 'it has no name'
    problem ??= `class names in its metadata are not understood: ${key} is ${shortened(text)}: ${why}; add a labels.txt`
  }
  return problem === undefined ? {} : { problem }
}

function shortened(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}...` : text)
}
