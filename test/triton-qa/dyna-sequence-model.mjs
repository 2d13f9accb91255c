/**
 * Stands for Triton's `dyna_sequence` backend: OUTPUT is the sum of INPUT since START of the sequence that CORRID names, whose number is
 * added at END.
 */
export default function create() {
  const sums = new Map()
  return {
    execute({ inputs: { INPUT, START, END, READY, CORRID } }) {
      const data = new Int32Array(INPUT.data.length)
      for (let slot = 0; slot < data.length; slot++) {
        if (READY.data[slot] === 0) continue
        const id = CORRID.data[slot]
        const key = typeof id === 'bigint' ? String(id) : Buffer.from(id).toString()
        const sum = (START.data[slot] === 0 ? (sums.get(key) ?? 0) : 0) + INPUT.data[slot]
        sums.set(key, sum)
        data[slot] = END.data[slot] === 0 ? sum : sum + Number(key)
        if (END.data[slot] !== 0) sums.delete(key)
      }
      return { OUTPUT: { shape: INPUT.shape, data } }
    },
  }
}
