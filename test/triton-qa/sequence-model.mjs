/**
 * Stands for Triton's `sequence` backend: OUTPUT is the sum of INPUT since START, for each slot of the batch that is READY.
 *
 * Of its parameters: `execute_delay_ms`.
 */
const after = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

export default function create({ parameters }) {
  const delayMs = Number(parameters.execute_delay_ms ?? 0)
  const sums = []
  return {
    async execute({ inputs: { INPUT, START, READY } }) {
      if (delayMs > 0) await after(delayMs)
      const slots = START.data.length
      const each = INPUT.data.length / slots
      const data = new Int32Array(INPUT.data.length)
      for (let slot = 0; slot < slots; slot++) {
        if (READY.data[slot] === 0) continue
        if (START.data[slot] !== 0) sums[slot] = 0
        for (let at = slot * each; at < (slot + 1) * each; at++) {
          sums[slot] = (sums[slot] ?? 0) + INPUT.data[at]
          data[at] = sums[slot]
        }
      }
      return { OUTPUT: { shape: INPUT.shape, data } }
    },
  }
}
