/**
 * Numbers of `cudaError_t` after which a session that ran before will not run again in this process: the context is gone (214, 700, 702,
 * 709, 710, 714 to 719), or the card is, as after an Xid of the driver (3, 4, 46, 100, 101, 201, 802, 999).
 */
const sticky = new Set([
  3, 4, 46, 100, 101, 201, 214, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 802, 999,
])

/** What cuDNN and cuBLAS say where the card does not do what they started: an error of CUDA lies behind it. */
const ofLibraries = /(CUDNN|CUBLAS)_STATUS_(EXECUTION_FAILED|MAPPING_ERROR)/

/** @param code - a number of `cudaError_t`. */
export function isStickyCode(code: number): boolean {
  return sticky.has(code)
}

/** @param text - what a run threw, as native code has it. @returns whether every later run on the card will fail in this process. */
export function isStickyFailure(text: string): boolean {
  const codes = [...text.matchAll(/CUDA (?:failure|error) (\d+)/g)].map(([, code]) => Number(code))
  const isLost = /\bXid\b|fallen off the bus|GPU is lost/i.test(text)
  return isLost || codes.some(isStickyCode) || ofLibraries.test(text)
}
