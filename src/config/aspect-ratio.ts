/** Narrowest and widest pixel that is believed, as width over height: between them lies all that recorders and lenses make. */
export const leastPixelAspect = 1 / 8
export const mostPixelAspect = 8

/** `16:9`, `16/9`, `1.778` or `2.39:1`. */
export const ratioForm = /^\d{1,5}(\.\d{1,6})?([:/]\d{1,5}(\.\d{1,6})?)?$/

/** Width over height. @param text - of the form of {@link ratioForm}; NaN or infinite where that is no ratio. */
export function ratioOf(text: string): number {
  const [width = '', height = '1'] = text.split(/[:/]/)
  return Number(width) / Number(height)
}
