/**
 * Stands for Triton's `identity` backend: OUTPUT<n> is INPUT<n>, one that is missing is left out.
 *
 * Of its parameters: `creation_delay_sec`, `execute_delay_ms`.
 */
const after = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

export default async function create({ parameters, inputs, outputs }) {
  await after(1000 * Number(parameters.creation_delay_sec ?? 0))
  const delayMs = Number(parameters.execute_delay_ms ?? 0)
  const inputOf = (output) => inputs[outputs.findIndex(({ name }) => name === output)]?.name
  return {
    async execute({ inputs: given, outputs: wanted }) {
      if (delayMs > 0) await after(delayMs)
      const pairs = wanted.map((name) => [name, given[inputOf(name)]])
      return Object.fromEntries(pairs.filter(([, tensor]) => tensor !== undefined))
    },
  }
}
