import type { CoverageSpan } from '../vision/coverage.js'

export type CoverageRange = Readonly<{
  /** Absent: of every camera that has any. */
  cameraId?: string
  fromMs: number
  toMs: number
}>

/** Where the time of cameras is kept. What was written before is read after. */
export interface CoverageStore {
  /** The end of what is known of each camera, from an earlier run too. */
  lastEnds(): Promise<ReadonlyMap<string, number>>
  /** In place of what it has of the camera from the first of them on. In order, touching; never empty. Never throws. */
  replace(spans: readonly CoverageSpan[]): void
  /** What lies at least partly within, whole, by camera in order of time; `most` and one more where there is more. */
  range(range: CoverageRange, most: number): Promise<readonly CoverageSpan[]>
}
