import type { CoverageSpan } from '../vision/coverage.js'
import type { FileFigures } from './store-file.js'
import type { SalvageReport } from './salvage/exchange.js'
import type { Gap, PlacedRecord, RangeQuery, SinkPlace } from './record.js'

/** What the writer begins with. */
export type WriterStart = Readonly<{
  path: string
  /** Of this run of the service; part of the cursors of its stream. */
  epoch: string
  sinks: readonly string[]
  /** Results beyond it go, oldest first. */
  maxBytes: number
  /** Results and events go beyond it. */
  maxAgeMs: number
}>

/** Records of one commit: what is known of each, and their values one behind the other. */
export type Batch = Readonly<{
  records: readonly (Omit<PlacedRecord, 'value'> & Readonly<{ bytes: number }>)[]
  values: ArrayBuffer
}>

export function packBatch(records: readonly PlacedRecord[]): Batch {
  const bytes = new Uint8Array(records.reduce((sum, { value }) => sum + value.length, 0))
  let at = 0
  const packed = records.map(({ value, ...record }) => {
    bytes.set(value, at)
    at += value.length
    return { ...record, bytes: value.length }
  })
  return { records: packed, values: bytes.buffer }
}

export function unpackBatch({ records, values }: Batch): readonly PlacedRecord[] {
  let at = 0
  return records.map(({ bytes, ...record }) => {
    const value = new Uint8Array(values, at, bytes)
    at += bytes
    return { ...record, value }
  })
}

type Message<Type extends string, Body = unknown> = Readonly<{ type: Type } & Body>

/** Control -> thread that writes. */
export type ToWriter =
  /**
   * @param from - the run's next record gets a place behind this one and behind all that are there
   * @param settled - how far sinks are known to be
   * @param damage - the file is damaged, as somebody saw who read it
   */
  | Message<'open', { from: number; settled: Readonly<Record<string, number>>; damage?: string }>
  | Message<
      'commit',
      { batch: Batch; settled: Readonly<Record<string, number>>; told: readonly Gap[]; durable: boolean }
    >
  | Message<'forget', { cameraId: string; position: number }>
  | Message<'coverage', { spans: readonly (readonly CoverageSpan[])[] }>
  | Message<'close'>

/** Why the file cannot be used now. */
export type StoreTrouble = Readonly<{
  /** `damaged`: what is in it cannot be trusted, and is to be salvaged. */
  kind: 'damaged' | 'failed'
  /** For people. */
  reason: string
}>

/** What was done about a damaged file before it was opened. `report`: none where nothing of it could be brought over. */
export type Rescue = Readonly<{ reason: string; report: SalvageReport | undefined; aside: string }>

/** Thread that writes -> control. A `commit` and an `open` have one answer each, in their order. */
export type FromWriter =
  | Message<'opened', { newest: number; sinks: readonly SinkPlace[]; rescue?: Rescue }>
  | Message<'committed'>
  /** The answer to each `forget`, done or not. */
  | Message<'forgot'>
  | Message<'failed', { trouble: StoreTrouble }>
  /** Seen between commits, none of which is answered by it. */
  | Message<'damaged', { reason: string }>
  | Message<'figures', { figures: FileFigures; dropped: number }>
  | Message<'gaps', { gaps: readonly Gap[] }>

/** Questions to the thread that reads. */
export type ReaderQuestion =
  | Message<'forSink', { sink: string; after: number; below: number; records: number; bytes: number }>
  | Message<'range', { query: RangeQuery }>
  | Message<'coverage', { cameraId: string | undefined; fromMs: number; toMs: number; limit: number }>
  | Message<'coverageEnds'>

/** What each is answered with. */
export type ReaderAnswers = Readonly<{
  forSink: readonly PlacedRecord[]
  range: readonly PlacedRecord[]
  coverage: readonly CoverageSpan[]
  coverageEnds: ReadonlyMap<string, number>
}>

export type ReaderAnswer = Readonly<
  { id: number } & ({ value: ReaderAnswers[keyof ReaderAnswers] } | { failed: string; isDamaged: boolean })
>
