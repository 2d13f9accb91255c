import type ort from '../onnxruntime.js'
import type { OrtApi } from './ort-api.js'
import { shapeIn } from './tensors.js'

/** Functions for the values on one side of a model. */
const sides = {
  input: { count: 'SessionGetInputCount', name: 'SessionGetInputName', type: 'SessionGetInputTypeInfo' },
  output: { count: 'SessionGetOutputCount', name: 'SessionGetOutputName', type: 'SessionGetOutputTypeInfo' },
} as const

/** Inputs or outputs of a model. */
export class ModelValues {
  /** Addresses of their names, by these; they are there until {@link release}. */
  readonly #addresses: ReadonlyMap<string, bigint>

  private constructor(
    readonly metadata: readonly ort.InferenceSession.ValueMetadata[],
    addresses: ReadonlyMap<string, bigint>,
  ) {
    this.#addresses = addresses
  }

  /** @param allocator - the usual one, which names lie in. */
  static of(api: OrtApi, session: number, side: keyof typeof sides, allocator: number): ModelValues {
    const calls = sides[side]
    const names = new BigUint64Array(api.made(calls.count, session))
    for (const index of names.keys()) names[index] = BigInt(api.made(calls.name, session, index, allocator))
    const texts = names.length === 0 ? [] : api.native.textsOf(names)
    return new ModelValues(
      texts.map((name, index) => ({ name, ...typeOf(api, api.made(calls.type, session, index)) })),
      new Map(texts.map((name, index) => [name, names[index]!])),
    )
  }

  has(name: string): boolean {
    return this.#addresses.has(name)
  }

  /** The names as a list in memory, as a run takes them. */
  cNames(names: readonly string[]): BigUint64Array {
    return BigUint64Array.from(names, (name) => this.#addresses.get(name)!)
  }

  release(api: OrtApi, allocator: number): void {
    for (const address of this.#addresses.values()) api.call('AllocatorFree', allocator, address)
  }
}

type Typed =
  | Readonly<{ isTensor: false }>
  | Readonly<{ isTensor: true; type: ort.Tensor.Type; shape: readonly (number | string)[] }>

/** As the binding tells it: sizes that are open by their names, which may be empty. @param info - an `OrtTypeInfo`, given back here. */
function typeOf(api: OrtApi, info: number): Typed {
  try {
    const tensor = api.made('CastTypeInfoToTensorInfo', info)
    if (tensor === 0) return { isTensor: false }
    const { type, dims } = shapeIn(api, tensor)
    const names = new BigUint64Array(dims.length)
    if (dims.length > 0) api.call('GetSymbolicDimensions', tensor, names, dims.length)
    const open = dims.length === 0 ? [] : api.native.textsOf(names)
    return { isTensor: true, type, shape: dims.map((size, index) => (size < 0 ? (open[index] ?? '') : size)) }
  } finally {
    api.release('ReleaseTypeInfo', info)
  }
}
