import { basename, dirname, join, normalize, resolve, sep } from 'node:path'
import { z } from 'zod'
import { readTextFile } from '../../config/text-file.js'
import { byTrueName, isSystemLimit, isThere } from '../../lifecycle/system-limit.js'
import { firstFew, LabelsError } from './labels-error.js'
import type { LabelledBox, LabelledSet } from './labelled-set.js'

const number = z.number()
const instancesSchema = z.object({
  images: z
    .array(z.object({ id: number.int(), file_name: z.string().min(1), width: number, height: number }))
    .min(1),
  annotations: z.array(
    z.object({
      image_id: number.int(),
      category_id: number.int(),
      bbox: z.tuple([number, number, number, number]),
      area: number.optional(),
      iscrowd: z.union([z.literal(0), z.literal(1), z.boolean()]).optional(),
    }),
  ),
  categories: z.array(z.object({ id: number.int(), name: z.string().min(1) })).min(1),
})
type Instances = z.infer<typeof instancesSchema>

/**
 * A data set with COCO's `instances` file. Pictures come in the order of their ids, as pycocotools takes them.
 *
 * @param images - the folder of the pictures, whether their names begin with it or not; looked for around the file without it.
 * @throws LabelsError `GANTRY_LABELS`, SystemLimitError
 */
export function readCocoSet(file: string, images?: string): LabelledSet {
  const { images: pictures, annotations, categories } = readInstances(file)
  const [first] = pictures
  const folder =
    images === undefined ? findFolder(file, first!.file_name) : namedFolder(images, first!.file_name)
  const classOf = new Map(categories.map(({ id }, index) => [id, index]))
  const boxes = new Map(pictures.map(({ id }) => [id, [] as LabelledBox[]]))
  const faults: string[] = []
  let empty = 0
  annotations.forEach(({ image_id, category_id, bbox, area, iscrowd }, index) => {
    const id = classOf.get(category_id)
    const list = boxes.get(image_id)
    if (id === undefined) faults.push(`${file}: annotations[${index}]: no category ${category_id}`)
    else if (list === undefined) faults.push(`${file}: annotations[${index}]: no image ${image_id}`)
    else if (!(bbox[2] > 0 && bbox[3] > 0)) empty += 1
    else
      list.push({ class: id, box: bbox, areaPx: area ?? bbox[2] * bbox[3], crowd: Boolean(iscrowd ?? false) })
  })
  if (faults.length > 0)
    throw new LabelsError(
      firstFew(faults),
      'Every annotation names an image and a category of the same file by its id.',
    )
  if (annotations.length === 0)
    throw new LabelsError(
      `${file}: no annotations in it`,
      'Name the instances file of a split whose labels are published.',
    )
  const sorted = pictures.toSorted((a, b) => a.id - b.id)
  return {
    name: file,
    format: 'coco',
    classes: categories.map(({ name }) => name),
    pictures: sorted.map(({ id, file_name: name, width, height }) => ({
      name,
      path: join(folder, name),
      size: { widthPx: width, heightPx: height },
      boxes: () => boxes.get(id)!,
    })),
    notes: empty > 0 ? [`${empty} boxes without an area were left out`] : [],
  }
}

function readInstances(file: string): Instances {
  let json: unknown
  try {
    json = JSON.parse(readTextFile(file))
  } catch (error) {
    if (isSystemLimit(error)) throw byTrueName(`cannot read ${file}`, error)
    const reason = error instanceof Error ? error.message : String(error)
    throw new LabelsError(`${file}: ${reason}`, 'Name a JSON file with COCO instances.', error)
  }
  const read = instancesSchema.safeParse(json)
  if (!read.success) {
    const [issue] = read.error.issues
    throw new LabelsError(
      `${file}: ${issue?.path.join('.') || 'the file'}: ${issue?.message ?? 'no COCO instances'}`,
      'A COCO file has images, annotations with bbox [x, y, width, height], and categories.',
    )
  }
  const ids = new Set(read.data.images.map(({ id }) => id))
  if (ids.size === read.data.images.length) return read.data
  throw new LabelsError(`${file}: images have the same id twice`, 'Give every image an id of its own.')
}

/** The folder that was named, or that above it where names of pictures begin with it: `val2017/1.jpg` and `--images val2017`. */
function namedFolder(images: string, picture: string): string {
  const folder = resolve(images)
  const inside = `${sep}${normalize(dirname(picture))}`
  if (isThere(join(folder, picture)) || !folder.endsWith(inside)) return folder
  const above = folder.slice(0, -inside.length)
  return isThere(join(above, picture)) ? above : folder
}

/** Beside the file, or where COCO itself has them: `annotations/instances_val2017.json` and `val2017/`. */
function findFolder(file: string, picture: string): string {
  const here = dirname(resolve(file))
  const split = basename(file, '.json').replace(/^instances_/, '')
  const places = [
    here,
    join(here, 'images'),
    ...['images', split, `images/${split}`, ''].map((name) => join(here, '..', name)),
  ]
  const found = places.find((place) => isThere(join(place, picture)))
  if (found !== undefined) return found
  throw new LabelsError(
    `${file}: its pictures are not there: no ${picture} in ${places.join(', ')}`,
    'Name their folder with --images.',
  )
}
