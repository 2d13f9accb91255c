import '../../lifecycle/catch-warnings.js'
import { parentPort } from 'node:worker_threads'
import { InternalError } from '../../errors.js'
import { frameElements, type InputPlan, pixelArray, writeFrame } from '../input-tensor.js'
import { type Outgoing, serveWorker, type WorkerBackend } from '../../runtime/worker-runtime.js'
import type { LetterboxAnswer, LetterboxJob, LetterboxLoad } from './letterbox-protocol.js'

/** Rearranges pixels for models that take planes, floats or another order of colours. */
class PixelWorker implements WorkerBackend<LetterboxLoad, unknown, LetterboxJob, LetterboxAnswer> {
  #plan: InputPlan | undefined

  load({ plan }: LetterboxLoad): Promise<unknown> {
    this.#plan = { ...plan, name: '' }
    return Promise.resolve(undefined)
  }

  run({ pictures }: LetterboxJob): Promise<Outgoing<LetterboxAnswer>> {
    const plan = this.#plan
    if (plan === undefined) throw new InternalError('run before load')
    const each = frameElements(plan)
    const length = each * pictures.length
    const data = new (pixelArray(plan.layout))(length)
    pictures.forEach((picture, index) => writeFrame(plan, picture, data, index * each))
    return Promise.resolve({ result: { pixels: data.buffer }, transfer: [data.buffer] })
  }

  release(): Promise<void> {
    return Promise.resolve()
  }
}

if (parentPort === null) throw new InternalError('letterbox-worker runs in a worker thread only')
serveWorker(parentPort, new PixelWorker())
