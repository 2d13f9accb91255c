import type { BoxPx } from './box.js'

/** What a step behind the detector says of an object; `score` is in 0..1. */
export type Attribute = Readonly<{ name: string; value: string; score?: number }>

/** One object found in one frame. `score` is in 0..1. */
export type Detection = Readonly<{
  label: string
  score: number
  boxPx: BoxPx
  trackId?: number
  attributes?: readonly Attribute[]
}>

/** Milliseconds a frame spent in each stage; `captureToPublish` is filled in where the message leaves. */
export type StageTimings = Readonly<{ queue: number; infer: number; postprocess: number }>
