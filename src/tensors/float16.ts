/** The bits of float16 numbers, over the same memory: outputs are `Float16Array` or `Uint16Array`, by the version of Node. */
export function float16Bits(data: ArrayBufferView): Uint16Array {
  return new Uint16Array(data.buffer, data.byteOffset, data.byteLength / 2)
}

/** IEEE 754 half precision to floats. */
export function floatsOf(bits: Uint16Array): Float32Array {
  return Float32Array.from(bits, (half) => {
    const sign = half & 0x8000 ? -1 : 1
    const exponent = (half >> 10) & 0x1f
    const fraction = half & 0x3ff
    if (exponent === 0) return sign * fraction * 2 ** -24
    if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : Number.NaN
    return sign * (1 + fraction / 1024) * 2 ** (exponent - 15)
  })
}
