import type { Frame } from '../../../src/vision/frame.js'

export const inputSize = { widthPx: 32, heightPx: 32 }

/** A frame of one brightness; `arrivedMs` is its time. */
export function grey(seq: number, arrivedMs: number, brightness = 100, over: Partial<Frame> = {}): Frame {
  return {
    cameraId: 'cam',
    seq,
    capturedAtMs: arrivedMs,
    arrivedMs,
    ptsMs: arrivedMs,
    quality: 'ok',
    source: { widthPx: 320, heightPx: 320 },
    regionPx: { x: 0, y: 0, widthPx: 320, heightPx: 320 },
    letterbox: { scale: 0.1, padXPx: 0, padYPx: 0 },
    rgbHwc: new Uint8Array(inputSize.widthPx * inputSize.heightPx * 3).fill(brightness).buffer,
    ...over,
  }
}
