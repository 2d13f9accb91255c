import '../../lifecycle/catch-warnings.js'
import { parentPort } from 'node:worker_threads'
import { toSourceBox } from '../frame-geometry.js'
import { type FrameFindings, FrameReader } from '../frame-reader.js'
import { headValues } from '../head-values.js'
import { InternalError } from '../../errors.js'
import { onnxOfDatatype } from '../../tensors/element-type.js'
import { type Outgoing, serveWorker, type WorkerBackend } from '../../runtime/worker-runtime.js'
import { geometryLength, type HeadAnswer, type HeadJob, type HeadLoad } from './head-protocol.js'
import { rowLength } from '../detector-protocol.js'

/** Decodes and suppresses, in a worker thread: outputs of a detector in, boxes in pixels of the picture out. */
class HeadWorker implements WorkerBackend<HeadLoad, unknown, HeadJob, HeadAnswer> {
  #reader: FrameReader | undefined

  load({ plan, input, limits }: HeadLoad): Promise<unknown> {
    this.#reader = new FrameReader(plan, input, limits)
    return Promise.resolve(undefined)
  }

  run({ outputs, geometry }: HeadJob): Promise<Outgoing<HeadAnswer>> {
    const reader = this.#reader
    if (reader === undefined) throw new InternalError('run before load')
    const values = outputs.map((output, index) => ({
      values: headValues(output.buffer, onnxOfDatatype(output.datatype), reader.plan.quantised?.[index]),
      shape: output.shape,
    }))
    let strange: HeadAnswer['strange']
    const frames = Array.from({ length: geometry.length / geometryLength }, (_, frame) => {
      const place = geometry.subarray(frame * geometryLength, (frame + 1) * geometryLength)
      const findings = reader.read(values, frame)
      strange = findings.strange
      return rowsOf(findings, place)
    })
    return Promise.resolve({ result: { frames, strange }, transfer: frames.map((rows) => rows.buffer) })
  }

  release(): Promise<void> {
    return Promise.resolve()
  }
}

function rowsOf({ found, kept }: FrameFindings, geometry: Float32Array): Float32Array<ArrayBuffer> {
  const [scale = 1, padXPx = 0, padYPx = 0, widthPx = 0, heightPx = 0] = geometry
  const source = { widthPx, heightPx }
  const place = { letterbox: { scale, padXPx, padYPx }, regionPx: { x: 0, y: 0, ...source }, source }
  const rows = new Float32Array(kept.length * rowLength)
  let length = 0
  for (const index of kept) {
    const [x1 = 0, y1 = 0, x2 = 0, y2 = 0] = found.boxes.subarray(index * 4, index * 4 + 4)
    const box = toSourceBox(x1, y1, x2, y2, place)
    if (box === undefined) continue
    rows.set([box.x1, box.y1, box.x2, box.y2, found.scores[index]!, found.classes[index]!], length)
    length += rowLength
  }
  return length === rows.length ? rows : rows.slice(0, length)
}

if (parentPort === null) throw new InternalError('head-worker runs in a worker thread only')
serveWorker(parentPort, new HeadWorker())
