import type ort from '../onnxruntime.js'
import { emptyTensor } from '../ort-tensor.js'
import type { Tensors } from '../session.js'
import type { DeviceMemory } from './device.js'
import type { OrtApi } from './ort-api.js'
import { madeValue, type TensorForm } from './tensors.js'

/** An input or output of a run in memory that stays where it is. */
type Bound = Readonly<{
  form: TensorForm
  bytes: number
  device: Place
  /** Beside it, for what comes from or goes to memory that the device cannot reach. */
  host: Place
}>

type Place = Readonly<{ value: number; address: number }>

/** Where elements lie in memory that the device reads by itself; undefined for other memory. */
export type PinnedAddress = (data: ArrayBufferView) => number | undefined

/**
 * A run with inputs and outputs at places on the device that never change, so that it can be recorded once and played back (a CUDA graph):
 * what is played back reads and writes these places, whatever the run is given. Hence inputs are copied there first, and outputs from there.
 */
export class ReplayedRun {
  readonly #inputs = new Map<string, Bound>()
  readonly #outputs = new Map<string, Bound>()
  readonly #api: OrtApi
  readonly #memory: DeviceMemory
  readonly #binding: number
  readonly #values: number[] = []

  private constructor(api: OrtApi, memory: DeviceMemory, binding: number) {
    this.#api = api
    this.#memory = memory
    this.#binding = binding
  }

  /**
   * @param inputs - of the one shape that is recorded.
   * @param outputs - all of the model, as a run with these inputs gave them.
   * @param arenas - allocators of the device and of the host.
   */
  static of(
    api: OrtApi,
    session: number,
    memory: DeviceMemory,
    arenas: Readonly<{ device: number; host: number }>,
    inputs: Tensors,
    outputs: Tensors,
  ): ReplayedRun {
    const run = new ReplayedRun(api, memory, api.made('CreateIoBinding', session))
    const bound = ({ type, dims, data }: ort.Tensor): Bound => {
      const { byteLength: bytes } = data as ArrayBufferView
      const form = { type, dims }
      return { form, bytes, device: run.#buffer(arenas.device, form), host: run.#buffer(arenas.host, form) }
    }
    try {
      for (const [name, tensor] of Object.entries(inputs)) {
        run.#inputs.set(name, bound(tensor))
        api.call('BindInput', run.#binding, name, run.#inputs.get(name)!.device.value)
      }
      for (const [name, tensor] of Object.entries(outputs)) {
        run.#outputs.set(name, bound(tensor))
        api.call('BindOutput', run.#binding, name, run.#outputs.get(name)!.device.value)
      }
      return run
    } catch (error) {
      run.release()
      throw error
    }
  }

  /** Whether inputs have the shapes of this run. */
  takes(inputs: Tensors): boolean {
    const given = Object.entries(inputs)
    return (
      given.length === this.#inputs.size &&
      given.every(([name, { type, dims }]) => {
        const form = this.#inputs.get(name)?.form
        return form?.type === type && form.dims.join() === dims.join()
      })
    )
  }

  /** @param fetches - names, or tensors of the shapes of the outputs, which are written over. */
  run(
    session: number,
    options: number,
    inputs: Tensors,
    fetches: readonly string[] | Tensors,
    addressOf: PinnedAddress,
  ): Tensors {
    const given: Tensors = isNames(fetches) ? {} : fetches
    for (const [name, { data }] of Object.entries(inputs))
      this.#copyIn(this.#inputs.get(name)!, data as ArrayBufferView, addressOf)
    this.#api.call('RunWithBinding', session, options, this.#binding)
    const names = isNames(fetches) ? fetches : Object.keys(fetches)
    return Object.fromEntries(
      names.map((name) => {
        const output = this.#outputs.get(name)!
        const tensor = given[name] ?? emptyTensor(output.form.type, output.form.dims)
        this.#copyOut(output, tensor.data as ArrayBufferView, addressOf)
        return [name, tensor]
      }),
    )
  }

  /** The binding first, which holds what is bound. */
  release(): void {
    this.#api.release('ReleaseIoBinding', this.#binding)
    for (const value of this.#values.splice(0)) this.#api.release('ReleaseValue', value)
  }

  #copyIn({ bytes, device, host }: Bound, data: ArrayBufferView, addressOf: PinnedAddress): void {
    if (bytes === 0) return
    const own = addressOf(data)
    if (own === undefined) this.#api.copyIn(data, host.address)
    this.#memory.copy(device.address, own ?? host.address, bytes, 'to device')
  }

  #copyOut({ bytes, device, host }: Bound, data: ArrayBufferView, addressOf: PinnedAddress): void {
    if (data.byteLength !== bytes)
      throw new RangeError(`an output of ${bytes} bytes does not fit ${data.byteLength}`)
    if (bytes === 0) return
    const own = addressOf(data)
    this.#memory.copy(own ?? host.address, device.address, bytes, 'to host')
    if (own === undefined) this.#api.copyOut(host.address, data)
  }

  #buffer(allocator: number, form: TensorForm): Place {
    const value = madeValue(this.#api, allocator, form)
    this.#values.push(value)
    return { value, address: this.#api.made('GetTensorMutableData', value) }
  }
}

export function isNames(fetches: readonly string[] | Tensors): fetches is readonly string[] {
  return Array.isArray(fetches)
}
