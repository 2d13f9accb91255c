/**
 * Stands for Triton's `identity` backend: OUTPUT<n> is INPUT<n>; of an optional input that is missing it is zeros.
 *
 * Of its parameters: `creation_delay_sec`, `execute_delay_ms`.
 */
const after = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const arrays = {
  FP32: Float32Array,
  FP64: Float64Array,
  INT32: Int32Array,
  INT64: BigInt64Array,
  UINT8: Uint8Array,
}

function zeros({ datatype, shape }, batchSize) {
  const sizes = shape.map((size, axis) => (size >= 0 ? size : axis === 0 ? batchSize : 1))
  const data = new (arrays[datatype] ?? Float32Array)(sizes.reduce((product, size) => product * size, 1))
  return { shape: sizes, data }
}

export default async function create({ parameters, inputs, outputs }) {
  await after(1000 * Number(parameters.creation_delay_sec ?? 0))
  const delayMs = Number(parameters.execute_delay_ms ?? 0)
  return {
    async execute({ inputs: given, outputs: wanted, batchSize }) {
      if (delayMs > 0) await after(delayMs)
      return Object.fromEntries(
        wanted.map((name) => {
          const at = outputs.findIndex((output) => output.name === name)
          return [name, given[inputs[at]?.name] ?? zeros(outputs[at], batchSize)]
        }),
      )
    },
  }
}
