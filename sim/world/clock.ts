/** Every clip runs at this rate; frame `i` shows the world at `i / framesPerSecond` seconds. */
export const framesPerSecond = 25
export const pictureWidthPx = 1280
export const pictureHeightPx = 720

export function frameCountOf(durationS: number): number {
  return Math.round(durationS * framesPerSecond)
}

export function secondsOf(frame: number): number {
  return frame / framesPerSecond
}
