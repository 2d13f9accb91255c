/** What a later step says of a detection: `helmet_colour` is `yellow`. `score` is in 0..1, where the step gives one. */
export type Attribute = Readonly<{ name: string; value: string; score?: number }>

/** One object found in one frame. `score` is in 0..1. */
export type Detection = Readonly<{
  label: string
  score: number
  boxPx: BoxPx
  trackId?: number
  /** Absent where there are none. */
  attributes?: readonly Attribute[]
}>

/** Milliseconds a frame spent in each stage; `captureToPublish` is filled in where the message leaves. */
export type StageTimings = Readonly<{ queue: number; infer: number; postprocess: number }>

/** Box in source-frame pixels, origin top-left: `0 <= x1 < x2 <= widthPx`, `0 <= y1 < y2 <= heightPx`. */
export type BoxPx = Readonly<{ x1: number; y1: number; x2: number; y2: number }>

/** Centre and size in model-input pixels, as a detector head emits it. */
export type HeadBox = Readonly<{ cx: number; cy: number; w: number; h: number }>
