import '../../lifecycle/catch-warnings.js'
import { pathToFileURL } from 'node:url'
import { parentPort } from 'node:worker_threads'
import { InternalError } from '../../errors.js'
import { ModelInvalidError } from '../../repository/errors.js'
import { type Outgoing, serveWorker, type WorkerBackend } from '../../runtime/worker-runtime.js'
import { type Datatype, isNumberDatatype } from '../../tensors/element-type.js'
import { elementsOf, packStrings, stringsOf } from '../../tensors/elements.js'
import type { CreateJsModel, JsData, JsModel, JsTensor, JsTensorSpec } from './js-model.js'
import type { JsAnswer, JsJob, JsLoad, JsTensorMessage } from './js-protocol.js'

/** Runs a user's model in a worker thread. */
class JsWorker implements WorkerBackend<JsLoad, unknown, JsJob, JsAnswer> {
  #model: JsModel | undefined
  #outputs: readonly JsTensorSpec[] = []

  async load({ file, context }: JsLoad): Promise<unknown> {
    const module = (await import(pathToFileURL(file).href)) as { default?: unknown }
    if (typeof module.default !== 'function')
      throw new ModelInvalidError(
        `${file} has no default export that is a function`,
        'Export a function that makes the model: `export default (context) => ({ execute(request) { ... } })`.',
      )
    const model = await (module.default as CreateJsModel)(context)
    if (typeof (model as Partial<JsModel> | undefined)?.execute !== 'function')
      throw new ModelInvalidError(
        `${file}: the default export made no object with execute()`,
        'Return { execute(request) { ... } } from it.',
      )
    this.#model = model
    this.#outputs = context.outputs
    return undefined
  }

  async run({ inputs, outputs, batchSize }: JsJob): Promise<Outgoing<JsAnswer>> {
    if (this.#model === undefined) throw new InternalError('run before load')
    const given = Object.fromEntries(inputs.map((input) => [input.name, tensorOf(input)]))
    const made = await this.#model.execute({ inputs: given, outputs, batchSize })
    const messages = this.#outputs.flatMap((spec) => {
      const tensor = made[spec.name]
      return tensor === undefined ? [] : [messageOf(spec, tensor)]
    })
    return { result: { outputs: messages }, transfer: messages.map(({ buffer }) => buffer) }
  }

  async release(): Promise<void> {
    await this.#model?.close?.()
  }
}

function tensorOf({ datatype, shape, buffer }: JsTensorMessage): JsTensor {
  const data = new Uint8Array(buffer)
  if (datatype === 'BYTES') return { shape, data: [...stringsOf(data)] }
  if (isNumberDatatype(datatype)) return { shape, data: elementsOf(datatype, data) }
  return { shape, data: new Uint16Array(buffer) }
}

function messageOf({ name, datatype }: JsTensorSpec, { shape, data }: JsTensor): JsTensorMessage {
  const bytes = bytesOf(name, datatype, data)
  const whole = bytes.byteLength === bytes.buffer.byteLength && bytes.buffer instanceof ArrayBuffer
  const buffer = whole ? bytes.buffer : new Uint8Array(bytes).buffer
  return { name, datatype, shape, buffer }
}

function bytesOf(name: string, datatype: Datatype, data: JsData): Uint8Array {
  if (isList(data)) {
    if (datatype !== 'BYTES') throw new TypeError(`output "${name}" is a list, but its type is ${datatype}`)
    return packStrings(data.map((element) => (typeof element === 'string' ? Buffer.from(element) : element)))
  }
  if (datatype === 'BYTES')
    throw new TypeError(`output "${name}" is BYTES: give a list of texts or byte strings`)
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
}

function isList(data: JsData): data is readonly (Uint8Array | string)[] {
  return Array.isArray(data)
}

if (parentPort === null) throw new InternalError('js-worker runs in a worker thread only')
serveWorker(parentPort, new JsWorker())
