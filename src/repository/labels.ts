import { readFileSync, statSync } from 'node:fs'
import { byTrueName, isSystemLimit } from '../lifecycle/system-limit.js'
import { ModelLabelsError } from './errors.js'

const maxLabelsBytes = 1024 * 1024

/** Stands in a list for a number that no class has. */
export const noLabel = 'N/A'

/**
 * Reads a labels file: one label per line, or a label map of TensorFlow's detection API (`item { id: 1 name: "helmet" }`), where
 * {@link noLabel} stands for the numbers it leaves out.
 *
 * @throws ModelLabelsError `GANTRY_MODEL_LABELS` if it is not there, is empty, or has an empty line in between; SystemLimitError.
 */
export function readLabelsFile(path: string): readonly string[] {
  const text = readText(path).replace(/^\uFEFF/, '')
  if (/^\s*(?:#.*\s+)*item\s*:?\s*\{/.test(text)) return labelsOfMap(text, path)
  const lines = text.split(/\r?\n/)
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

function labelsOfMap(text: string, path: string): readonly string[] {
  const names: string[] = []
  for (const [, item = ''] of text.matchAll(/item\s*:?\s*\{([^}]*)\}/g)) {
    const id = /\bid\s*:\s*(\d{1,5})\b/.exec(item)?.[1]
    const [, single, double] =
      new RegExp(`\\bdisplay_name\\s*:\\s*(?:${quoted.source})`).exec(item) ??
      new RegExp(`\\bname\\s*:\\s*(?:${quoted.source})`).exec(item) ??
      []
    const name = unescapeName(single ?? double ?? '').trim()
    if (id === undefined || name === '' || names[Number(id)] !== undefined)
      throw new ModelLabelsError(
        `${path}: a label map whose item has ${id === undefined ? 'no id' : name === '' ? `no name for id ${id}` : `id ${id} twice`}`,
        'Write item { id: 1 name: "helmet" } for each class, or one label on each line.',
      )
    names[Number(id)] = name
  }
  return withoutHoles(names)
}

function withoutHoles(names: readonly string[]): readonly string[] {
  return Array.from(names, (name: string | undefined) => (name === undefined || name === '' ? noLabel : name))
}

function readText(path: string): string {
  try {
    if (statSync(path).size > maxLabelsBytes) throw new Error(`more than ${maxLabelsBytes} bytes`)
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (isSystemLimit(error)) throw byTrueName(`cannot read labels ${path}`, error)
    throw new ModelLabelsError(
      `cannot read labels ${path}: ${error instanceof Error ? error.message : String(error)}`,
      'Put the file into the model folder, or correct label_filename in config.pbtxt.',
      error,
    )
  }
}

/**
 * Class names out of the metadata of a model: the `names` entry that exporters of the YOLO family write, a Python or JSON map
 * from number to name, or a JSON list. {@link noLabel} stands for numbers that a map leaves out.
 *
 * @returns `undefined` if there is none.
 */
export function labelsFromMetadata(
  metadata: Readonly<Record<string, string>>,
): readonly string[] | undefined {
  const text = metadata.names ?? metadata.labels ?? metadata.classes
  if (text === undefined) return undefined
  const names = /^\s*\[/.test(text) ? listOfNames(text) : mapOfNames(text)
  return names.length > 0 ? withoutHoles(names) : undefined
}

const quoted = /'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"/

function listOfNames(text: string): string[] {
  return [...text.matchAll(new RegExp(quoted, 'g'))].map((match) => unescapeName(match[1] ?? match[2] ?? ''))
}

function mapOfNames(text: string): string[] {
  const names: string[] = []
  for (const match of text.matchAll(new RegExp(`['"]?(\\d{1,5})['"]?\\s*:\\s*(?:${quoted.source})`, 'g')))
    names[Number(match[1])] = unescapeName(match[2] ?? match[3] ?? '')
  return names
}

function unescapeName(name: string): string {
  return name.replace(/\\(.)/g, '$1')
}
