import type { EventType } from '../messages/cloud-event.js'

/** What the service says to everybody who takes it: a result of a frame, or an event. */
export type StoreRecord = Readonly<{
  /** Stable over retries and restarts. */
  id: string
  type: EventType
  cameraId: string
  /** Frame number of a result; 0 for everything else. */
  seq: number
  /** UTC time of capture or of the event, milliseconds since the epoch. */
  timeMs: number
  /** JSON, UTF-8. */
  value: Uint8Array
  /** The one sink that it is for; absent: all of them. */
  sink?: string
}>

/**
 * A record at its place: records are in the order of their positions, which grow over restarts. A position is given once; not each has
 * a record, as some are for one sink, have been deleted, or could not be written.
 */
export type PlacedRecord = StoreRecord & Readonly<{ position: number }>

/**
 * Between two results there is room for so many events: results are counted without holes, so that a cursor of the stream, which they alone
 * are in, goes up by one with each.
 */
const placesOfResult = 1_024

/** @param newest - the position before. */
export function nextPosition(newest: number, isResult: boolean): number {
  return isResult ? (streamPosition(newest) + 1) * placesOfResult : newest + 1
}

/** What the stream calls the position: that of the last result up to there. */
export function streamPosition(position: number): number {
  return Math.floor(position / placesOfResult)
}

/** The position of a result by what the stream calls it. */
export function positionInStore(inStream: number): number {
  return inStream * placesOfResult
}

/** Records of a camera that were deleted or lost before a sink had delivered them, and have not been told. */
export type Gap = Readonly<{
  sink: string
  /** `*` where the file does not say any more which camera it was. */
  cameraId: string
  /** `retention`: they were too many or too old. `damaged`: the file was. `store_lost`: it was gone. */
  reason: 'retention' | 'damaged' | 'store_lost'
  /** With `*`: at most. */
  dropped: number
  /** UTC times of the first and of the last of them, milliseconds since the epoch. */
  fromMs: number
  toMs: number
}>

/** How far a sink is: all that it was given up to `settled` is delivered or given up. */
export type SinkPlace = Readonly<{ sink: string; settled: number; pending: number }>

/** What is wanted of the results of the past. */
export type RangeQuery = Readonly<{
  /** Absent: of all. */
  cameraId?: string
  fromMs: number
  /** Not included. */
  toMs: number
  /** Older than this one alone: the last of the page before. */
  before?: Readonly<{ timeMs: number; cameraId: string; seq: number }>
  /** Results whose JSON holds this text alone. */
  contains?: string
  limit: number
}>

/** A result of the past as the stream has it. */
export type StreamedResult = Readonly<{
  /** As the stream counts. */
  position: number
  cameraId: string
  /** JSON, UTF-8. */
  value: Uint8Array
}>
