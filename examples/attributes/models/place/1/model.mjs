const places = ['left', 'middle', 'right']

/**
 * The third of the picture that the middle of each box is in; no text for a box wider than a third.
 *
 * @type {import('gantry/backend').CreateJsModel}
 */
export default function create() {
  return {
    execute({ inputs }) {
      const { shape, data: boxes } = /** @type {{ shape: number[], data: Float32Array }} */ (inputs.detections)
      const [, , , widthPx = 1] = /** @type {Float32Array} */ (inputs.geometry.data)
      const [count = 0, columns = 6] = shape
      const data = Array.from({ length: count }, (_, row) => {
        const [x1 = 0, , x2 = 0] = boxes.subarray(row * columns)
        if (x2 - x1 > widthPx / 3) return ''
        return places[Math.min(2, Math.floor(((x1 + x2) * 1.5) / widthPx))]
      })
      return { place: { shape: [count], data } }
    },
  }
}
