import { decodePicture, type DecodedPicture } from '../../backends/image-decode/decode-picture.js'
import { isScore, type StrangeScores, strangeIn } from '../../detector/strange-scores.js'
import { labelOf } from '../../detector/heads/label-list.js'
import { elementsOf, packStrings } from '../../tensors/elements.js'
import type { Tensor, TensorSpec } from '../../tensors/tensor.js'
import { ImageInvalidError } from '../../sources/source-errors.js'
import { stillSize } from '../../sources/still.js'
import type { Detection } from '../../vision/detection.js'
import { GantryError } from '../../errors.js'
import type { Picture } from './picture-scorer.js'
import type { ServedForm, ServedRequest } from './served-form.js'

/** Numbers of a row: x1, y1, x2, y2 in pixels of the picture, score, class. */
const rowLength = 6

/** The answer of a server has another form than its model says. */
export class ServedAnswerError extends GantryError {
  readonly code = 'GANTRY_MODEL_SERVER'
  readonly hint =
    'The model gives other outputs than it declares; look at it with `gantry models list --url URL`.'
  constructor(message: string) {
    super(message)
    this.name = 'ServedAnswerError'
  }
}

/** An ensemble for pictures, such as `ppe` of this project: a whole picture in, rows of boxes out. */
export class ServedEnsemble implements ServedForm {
  readonly outputs: readonly string[]

  constructor(
    readonly image: TensorSpec,
    readonly detections: TensorSpec,
    readonly labels: readonly string[],
    readonly onStrange: (strange: StrangeScores) => void = () => undefined,
  ) {
    this.outputs = [detections.name]
  }

  get input(): string {
    return takesFiles(this.image) ? 'files' : 'pixels of any size'
  }

  async requestFor(picture: Picture): Promise<ServedRequest> {
    if (!takesFiles(this.image)) {
      const { rgbHwc, widthPx, heightPx } = await pixelsOf(picture)
      const shape = [heightPx, widthPx, 3]
      return this.#request({ widthPx, heightPx }, { datatype: 'UINT8', shape, data: rgbHwc })
    }
    const bytes = picture.kind === 'file' ? picture.bytes : await pngOf(picture)
    const size = await stillSize(bytes)
    if (this.image.datatype === 'UINT8')
      return this.#request(size, { datatype: 'UINT8', shape: [bytes.byteLength], data: bytes })
    return this.#request(size, { datatype: 'BYTES', shape: [1], data: packStrings([bytes]) })
  }

  #request(size: ServedRequest['size'], tensor: Omit<Tensor, 'name'>): ServedRequest {
    const inputs = [{ name: this.image.name, ...tensor }]
    return { size, inputs, read: (outputs) => this.#read(outputs) }
  }

  #read(outputs: readonly Tensor[]): readonly Detection[] {
    const { name } = this.detections
    const tensor = outputs.find((each) => each.name === name)
    if (tensor?.datatype !== 'FP32' || tensor.shape.at(-1) !== rowLength)
      throw new ServedAnswerError(
        `output "${name}" is ${tensor === undefined ? 'missing' : `${tensor.datatype} [${tensor.shape.join(', ')}]`}, expected FP32 [-1, 6]`,
      )
    const rows = elementsOf('FP32', tensor.data) as Float32Array
    const count = Math.floor(rows.length / rowLength)
    const found = Array.from({ length: count }, (_, row) => {
      const [x1, y1, x2, y2, score, id] = rows.subarray(
        row * rowLength,
        (row + 1) * rowLength,
      ) as unknown as Row
      return { label: labelOf(this.labels, id) ?? `class_${id}`, score, boxPx: { x1, y1, x2, y2 } }
    })
    const sound = found.filter(
      ({ score, boxPx: { x1, y1, x2, y2 } }) => isScore(score) && Number.isFinite(x1 + y1 + x2 + y2),
    )
    if (sound.length < count) this.onStrange(strangeIn(rows, 4))
    return sound
  }
}

type Row = readonly [number, number, number, number, number, number]

/** The tensors of an ensemble for pictures among those of a model; undefined where it is none. */
export function pictureTensors(
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[],
): Readonly<{ image: TensorSpec; detections: TensorSpec }> | undefined {
  const [image, ...others] = inputs.filter(({ optional }) => optional !== true)
  const detections = outputs.find(
    ({ datatype, shape }) => datatype === 'FP32' && shape.length === 2 && shape[1] === rowLength,
  )
  if (image === undefined || others.length > 0 || detections === undefined) return undefined
  return takesFiles(image) || takesPixels(image) ? { image, detections } : undefined
}

function takesFiles({ datatype, shape }: TensorSpec): boolean {
  return (datatype === 'BYTES' || datatype === 'UINT8') && shape.length === 1
}

function takesPixels({ datatype, shape }: TensorSpec): boolean {
  return datatype === 'UINT8' && shape.length === 3 && shape[2] === 3
}

/** @throws ImageInvalidError `GANTRY_IMAGE_INVALID` */
async function pixelsOf(picture: Picture): Promise<DecodedPicture> {
  if (picture.kind === 'pixels') return picture
  await stillSize(picture.bytes)
  try {
    return await decodePicture(picture.bytes)
  } catch (error) {
    throw new ImageInvalidError(error instanceof Error ? error.message : String(error), error)
  }
}

/** Without a loss, for servers that take files alone. */
async function pngOf({ rgbHwc, widthPx, heightPx }: DecodedPicture): Promise<Uint8Array> {
  const { default: sharp } = await import('../../lifecycle/sharp.js')
  const raw = { width: widthPx, height: heightPx, channels: 3 } as const
  return sharp(rgbHwc, { raw }).png({ compressionLevel: 1 }).toBuffer()
}
