import { once } from 'node:events'
import { createWriteStream, type WriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import type { BatchLine } from '../../../messages/batch-line.js'
import { readBatchLines } from './read-lines.js'

/** Text that is gathered before it is written. */
const chunkLength = 256 * 1024

/**
 * Writes a COCO document of kept lines: `images`, `categories` and `annotations` with a `score`, ids from 1 in the order of the lines. The
 * lines are read twice, and none is held.
 *
 * @param labels - categories, in this order; labels that come besides are behind them.
 * @throws what the file system throws
 */
export async function writeCoco(path: string, lines: string, labels: readonly string[]): Promise<void> {
  const categories = new Map(labels.map((label, index) => [label, index + 1]))
  const out = new TextStream(path)
  try {
    await out.add('{"info":{"description":"gantry batch"},"images":[')
    let images = 0
    for await (const line of readBatchLines(lines)) {
      for (const { label } of line.detections)
        if (!categories.has(label)) categories.set(label, categories.size + 1)
      await out.add(`${images > 0 ? ',' : ''}\n${JSON.stringify(imageOf(line, ++images))}`)
    }
    const named = [...categories].map(([name, id]) => JSON.stringify({ id, name }))
    await out.add(`\n],"categories":[\n${named.join(',\n')}\n],"annotations":[`)
    let [image, id] = [0, 0]
    for await (const line of readBatchLines(lines)) {
      image += 1
      for (const annotation of annotationsOf(line, categories))
        await out.add(`${id > 0 ? ',' : ''}\n${JSON.stringify({ id: ++id, image_id: image, ...annotation })}`)
    }
    await out.add('\n]}\n')
  } finally {
    await out.end()
  }
}

function imageOf({ item, widthPx, heightPx }: BatchLine, id: number): object {
  return { id, file_name: item, width: widthPx, height: heightPx }
}

function annotationsOf({ detections }: BatchLine, categories: ReadonlyMap<string, number>): object[] {
  return detections.map(({ label, score, boxPx: { x1, y1, x2, y2 }, attributes }) => {
    const [width, height] = [x2 - x1, y2 - y1]
    return {
      category_id: categories.get(label),
      bbox: [x1, y1, width, height],
      area: width * height,
      iscrowd: 0,
      score,
      ...(attributes && { attributes }),
    }
  })
}

/** Text into a file, in large pieces, no faster than the disk takes them. */
class TextStream {
  readonly #stream: WriteStream
  #text = ''
  #failure: Error | undefined

  constructor(path: string) {
    this.#stream = createWriteStream(path, { flush: true })
    this.#stream.on('error', (error) => (this.#failure = error))
  }

  async add(text: string): Promise<void> {
    this.#text += text
    if (this.#text.length >= chunkLength) await this.#write()
  }

  /** @throws what kept the file from being written */
  async end(): Promise<void> {
    if (this.#failure === undefined) {
      await this.#write()
      this.#stream.end()
      await finished(this.#stream)
    }
    if (this.#failure !== undefined) throw this.#failure
  }

  async #write(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    const text = this.#text
    this.#text = ''
    if (text !== '' && !this.#stream.write(text)) await once(this.#stream, 'drain')
  }
}
