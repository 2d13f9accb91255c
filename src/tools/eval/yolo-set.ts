import { readdirSync, statSync } from 'node:fs'
import { basename, dirname, extname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { parse } from 'yaml'
import { z } from 'zod'
import { EncodingError, readTextFile } from '../../config/text-file.js'
import { byTrueName, isSystemLimit, isThere } from '../../lifecycle/system-limit.js'
import { firstFew, LabelsError } from './labels-error.js'
import type { LabelledBox, LabelledPicture, LabelledSet } from './labelled-set.js'
import { type YoloBox, yoloLines } from './yolo-lines.js'

/** What is decoded. Others are told, and passed over. */
const pictureEndings = new Set(['.jpg', '.jpeg', '.png'])
const otherPictures = new Set(['.bmp', '.webp', '.tif', '.tiff', '.gif', '.heic', '.avif'])

const place = z.union([z.string().min(1), z.array(z.string().min(1)).min(1)])
const dataSchema = z.looseObject({
  path: z.string().optional(),
  train: place.nullish(),
  val: place.nullish(),
  valid: place.nullish(),
  test: place.nullish(),
  nc: z.number().int().min(1).optional(),
  names: z.union([
    z.array(z.coerce.string()).min(1),
    z.record(z.coerce.number<string>().int().min(0), z.coerce.string()),
  ]),
})
type Data = z.infer<typeof dataSchema>

export const splits = ['train', 'val', 'test'] as const
export type Split = (typeof splits)[number]

/**
 * A data set in the layout of the YOLO family: `data.yaml` with `names` and folders of pictures, and beside each `images/` a `labels/`
 * with a text file for each picture. A picture without one, or with an empty one, has nothing on it.
 *
 * @param path - `data.yaml`, or the folder it is in.
 * @throws LabelsError `GANTRY_LABELS` with file and line, SystemLimitError
 */
export function readYoloSet(path: string, split: Split): LabelledSet {
  const file = dataFile(path)
  const data = readData(file)
  const classes = namesOf(data, file)
  const folder = resolve(dirname(file))
  const places = [(split === 'val' ? (data.val ?? data.valid) : data[split]) ?? []].flat()
  if (places.length === 0)
    throw new LabelsError(
      `${file} names no pictures for "${split}"`,
      `Add "${split}: FOLDER", or choose another with --split.`,
    )
  const found = places.map((each) => picturesAt(each, data.path, folder, file))
  const paths = [...new Set(found.flatMap(({ pictures }) => pictures))].sort()
  if (paths.length === 0)
    throw new LabelsError(
      `${found.map(({ at }) => at).join(', ')}: no pictures in it`,
      'Pictures are .jpg, .jpeg or .png files; `path`, `train`, `val` and `test` in data.yaml say where they are.',
    )
  const { pictures, notes } = labelled(paths, folder, classes.length)
  const others = found.flatMap(({ others: each }) => each)
  const passedOver =
    others.length === 0
      ? []
      : [`${others.length} pictures are neither JPEG nor PNG and were passed over, such as ${others[0]}`]
  return { name: `${file} (${split})`, format: 'yolo', classes, pictures, notes: [...notes, ...passedOver] }
}

function dataFile(path: string): string {
  const info = statSync(path, { throwIfNoEntry: false })
  if (info === undefined)
    throw new LabelsError(`${path}: no such file or folder`, 'Name a data set with --data.')
  if (!info.isDirectory()) return path
  const file = ['data.yaml', 'data.yml', 'dataset.yaml'].map((name) => join(path, name)).find(isThere)
  if (file !== undefined) return file
  throw new LabelsError(
    `${path}: no data.yaml in it`,
    'Name a folder with a data.yaml (YOLO), or the file with the instances (COCO JSON).',
  )
}

function readData(file: string): Data {
  let text: unknown
  try {
    text = parse(readText(file))
  } catch (error) {
    if (isSystemLimit(error) || error instanceof LabelsError) throw error
    throw new LabelsError(`${file}: ${firstLine(error)}`, 'Correct the YAML at that place.', error)
  }
  const read = dataSchema.safeParse(text)
  if (read.success) return read.data
  const [issue] = read.error.issues
  throw new LabelsError(
    `${file}: ${issue?.path.join('.') || 'the file'}: ${issue?.message ?? 'is no data set'}`,
    'A data.yaml has `names`, the classes in the order of their numbers, and `train` and `val`, folders of pictures.',
  )
}

function namesOf({ names, nc }: Data, file: string): readonly string[] {
  const count = Array.isArray(names) ? names.length : Math.max(...Object.keys(names).map(Number)) + 1
  const list = Array.from({ length: count }, (_, index) => names[index])
  const missing = list.findIndex((name) => name === undefined)
  const problem =
    missing >= 0
      ? `names has no class ${missing}`
      : nc !== undefined && nc !== count
        ? `nc is ${nc}, but names has ${count}`
        : undefined
  if (problem === undefined) return list as string[]
  throw new LabelsError(`${file}: ${problem}`, 'Name every class, in the order of their numbers.')
}

type Pictures = Readonly<{ at: string; pictures: readonly string[]; others: readonly string[] }>

function picturesAt(place: string, base: string | undefined, folder: string, file: string): Pictures {
  const at = locate(place, base, folder)
  if (at === undefined)
    throw new LabelsError(
      `${file}: "${place}" is not there`,
      `It is looked for below ${base ?? 'the folder of the file'}; correct it, or \`path\`.`,
    )
  if (statSync(at).isDirectory()) {
    const files = readdirSync(at, { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name))
    return { at, ...chosen(files) }
  }
  const lines = readText(at)
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '')
  return { at, ...chosen(lines.map((line) => resolve(dirname(at), line.trim()))) }
}

/** Files of some exporters stand a folder below the one that they were written for: `../valid/images`. */
function locate(place: string, base: string | undefined, folder: string): string | undefined {
  const from = base === undefined || isAbsolute(base) ? [base, folder] : [join(folder, base), folder]
  return from
    .filter((each) => each !== undefined)
    .flatMap((each) => [resolve(each, place), resolve(each, place.replace(/^(\.\.\/)+/, ''))])
    .find(isThere)
}

function chosen(files: readonly string[]): Pick<Pictures, 'pictures' | 'others'> {
  const endingOf = (file: string) => extname(file).toLowerCase()
  return {
    pictures: files.filter((file) => pictureEndings.has(endingOf(file))),
    others: files.filter((file) => otherPictures.has(endingOf(file))),
  }
}

function labelled(
  paths: readonly string[],
  folder: string,
  classes: number,
): Readonly<{ pictures: readonly LabelledPicture[]; notes: readonly string[] }> {
  const faults: string[] = []
  let empty = 0
  let without = 0
  const pictures = paths.map((path) => {
    const labels = labelFileOf(path)
    const text = textIfThere(labels)
    if (text === undefined) without += 1
    const read = yoloLines(text ?? '', classes)
    empty += read.empty
    faults.push(...read.faults.map((fault) => `${labels}: ${fault}`.replace(/: line (\d+): /, ':$1: ')))
    return { name: nameOf(path, folder), path, size: undefined, boxes: boxesOf(read.boxes) }
  })
  if (faults.length > 0)
    throw new LabelsError(
      firstFew(faults),
      'Each line is a number of a class, then cx cy w h of a box as shares of the picture.',
    )
  if (without === paths.length)
    throw new LabelsError(
      `none of ${paths.length} pictures has a label file: ${labelFileOf(paths[0]!)} is not there`,
      'Labels lie in a folder labels/ beside images/, with the names of the pictures and the ending .txt.',
    )
  const notes = [
    ...(without > 0 ? [`${without} of ${paths.length} pictures have no label file: taken as empty`] : []),
    ...strayNotes(paths),
    ...(empty > 0 ? [`${empty} boxes without an area were left out`] : []),
  ]
  return { pictures, notes }
}

/** Label files whose picture is missing are a set that was copied in part. */
function strayNotes(paths: readonly string[]): readonly string[] {
  const expected = new Set(paths.map(labelFileOf))
  const stray = [...new Set([...expected].map(dirname))].flatMap((folder) =>
    isThere(folder)
      ? readdirSync(folder)
          .filter((name) => name.endsWith('.txt') && name !== 'classes.txt')
          .map((name) => join(folder, name))
          .filter((file) => !expected.has(file))
      : [],
  )
  return stray.length === 0 ? [] : [`${stray.length} label files have no picture, such as ${stray[0]}`]
}

/** `images/` becomes `labels/`, the last one in the path. */
function labelFileOf(picture: string): string {
  const parts = dirname(picture).split(sep)
  const at = parts.lastIndexOf('images')
  if (at >= 0) parts[at] = 'labels'
  return join(parts.join(sep) || sep, `${basename(picture, extname(picture))}.txt`)
}

function nameOf(path: string, folder: string): string {
  const name = relative(folder, path)
  return name.startsWith('..') ? path : name
}

function boxesOf(boxes: readonly YoloBox[]): LabelledPicture['boxes'] {
  return ({ widthPx, heightPx }) =>
    boxes.map(({ class: id, cx, cy, w, h }): LabelledBox => {
      const [width, height] = [w * widthPx, h * heightPx]
      const box = [(cx - w / 2) * widthPx, (cy - h / 2) * heightPx, width, height] as const
      return { class: id, box, areaPx: width * height, crowd: false }
    })
}

function textIfThere(file: string): string | undefined {
  try {
    return readTextFile(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw unreadableFile(file, error)
  }
}

function readText(file: string): string {
  try {
    return readTextFile(file)
  } catch (error) {
    throw unreadableFile(file, error)
  }
}

function unreadableFile(file: string, error: unknown): Error {
  return error instanceof EncodingError
    ? new LabelsError(`${file} cannot be read: ${error.message}`, 'Save the file as UTF-8.', error)
    : byTrueName(`cannot read ${file}`, error)
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? ''
}
