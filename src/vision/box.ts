/** Box in source-frame pixels, origin top-left: `0 <= x1 < x2 <= widthPx`, `0 <= y1 < y2 <= heightPx`. */
export type BoxPx = Readonly<{ x1: number; y1: number; x2: number; y2: number }>

/** Centre and size in model-input pixels, as a detector head emits it. */
export type HeadBox = Readonly<{ cx: number; cy: number; w: number; h: number }>
