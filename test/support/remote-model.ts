import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { protoField, protoVarint } from './raw-proto.js'

export type RemoteModels = Readonly<{ port: number; stop(): Promise<unknown> }>

/**
 * Starts a remote server in a thread of its own.
 *
 * @param answers - `ModelInferResponse` by name of model.
 * @param options - of its channel.
 */
export async function startRemoteModels(
  answers: Readonly<Record<string, Uint8Array>>,
  options: Readonly<Record<string, unknown>> = {},
): Promise<RemoteModels> {
  const entry = fileURLToPath(new URL('./remote-model.mjs', import.meta.url))
  const worker = new Worker(entry, { workerData: { answers, options } })
  const port = await new Promise<number>((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  })
  return { port, stop: () => worker.terminate() }
}

/** `InferOutputTensor` called y. @param contents - of its `InferTensorContents`; absent: it has raw contents. */
export function outputField(datatype: string, shape: readonly number[], contents?: Uint8Array): Buffer {
  const fields = [
    protoField(1, 'y'),
    protoField(2, datatype),
    protoField(3, Buffer.concat(shape.map(protoVarint))),
  ]
  return protoField(5, Buffer.concat(contents === undefined ? fields : [...fields, protoField(5, contents)]))
}

export function rawField(data: Uint8Array): Buffer {
  return protoField(6, data)
}
