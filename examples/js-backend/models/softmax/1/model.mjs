/**
 * Logits to probabilities, for each row of a batch: a model that needs no file but this one.
 *
 * @type {import('gantry/backend').CreateJsModel}
 */
export default function create({ parameters }) {
  const temperature = Number(parameters.temperature ?? '1')
  return {
    execute({ inputs }) {
      const { shape, data } = /** @type {{ shape: number[], data: Float32Array }} */ (inputs.logits)
      const columns = shape.at(-1) ?? 1
      const probabilities = new Float32Array(data.length)
      for (let row = 0; row < data.length; row += columns) {
        const logits = data.subarray(row, row + columns)
        const highest = Math.max(...logits)
        const powers = logits.map((logit) => Math.exp((logit - highest) / temperature))
        const sum = powers.reduce((total, power) => total + power, 0)
        powers.forEach((power, column) => (probabilities[row + column] = power / sum))
      }
      return { probabilities: { shape, data: probabilities } }
    },
  }
}
