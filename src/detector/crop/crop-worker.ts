import '../../lifecycle/catch-warnings.js'
import { parentPort } from 'node:worker_threads'
import { InternalError } from '../../errors.js'
import { type Outgoing, serveWorker, type WorkerBackend } from '../../runtime/worker-runtime.js'
import { frameElements, type InputPlan, pixelArray, writeFrame } from '../input-tensor.js'
import { rowLength } from '../detector-protocol.js'
import type { CropPlan } from './crop-parameters.js'
import type { CropAnswer, CropJob, CropLoad } from './crop-protocol.js'
import { croppedFrame, cutBox } from './cut-box.js'

/** Cuts boxes out of a frame, in a worker thread. */
class CropWorker implements WorkerBackend<CropLoad, unknown, CropJob, CropAnswer> {
  #plan: CropPlan | undefined

  load({ plan }: CropLoad): Promise<unknown> {
    this.#plan = plan
    return Promise.resolve(undefined)
  }

  run({ frame, widthPx, heightPx, geometry, boxes }: CropJob): Promise<Outgoing<CropAnswer>> {
    if (this.#plan === undefined) throw new InternalError('run before load')
    const { form, marginShare } = this.#plan
    const input: InputPlan = { ...form, name: '' }
    const each = frameElements(input)
    const length = each * (boxes.length / rowLength)
    const crops = new (pixelArray(form.layout))(length)
    const from = croppedFrame(new Uint8Array(frame), { widthPx, heightPx }, geometry)
    const pixels = new Uint8Array(each)
    for (let row = 0, at = 0; row < boxes.length; row += rowLength, at += each) {
      const box = { x1: boxes[row]!, y1: boxes[row + 1]!, x2: boxes[row + 2]!, y2: boxes[row + 3]! }
      cutBox(from, box, marginShare, form.size, pixels)
      writeFrame(input, pixels.buffer, crops, at)
    }
    return Promise.resolve({ result: { crops: crops.buffer }, transfer: [crops.buffer] })
  }

  release(): Promise<void> {
    return Promise.resolve()
  }
}

if (parentPort === null) throw new InternalError('crop-worker runs in a worker thread only')
serveWorker(parentPort, new CropWorker())
