import type { CoverageSpan } from '../vision/coverage.js'
import type { CoverageRange, CoverageStore } from './coverage-store.js'

/** Spans kept of each camera: at one change in ten seconds those of a day. */
const mostSpans = 8_640
/** Cameras that are kept, those without news longest go first. */
const mostCameras = 2_048

/** The time of cameras of this run. */
export class MemoryCoverageStore implements CoverageStore {
  /** The camera that was written longest ago comes first. */
  readonly #cameras = new Map<string, CoverageSpan[]>()

  lastEnds(): Promise<ReadonlyMap<string, number>> {
    return Promise.resolve(
      new Map([...this.#cameras].map(([id, spans]) => [id, spans.at(-1)?.toMs ?? -Infinity])),
    )
  }

  replace(spans: readonly CoverageSpan[]): void {
    const [first] = spans
    if (first === undefined) return
    const kept = this.#cameras.get(first.cameraId) ?? []
    while ((kept.at(-1)?.fromMs ?? -Infinity) >= first.fromMs) kept.pop()
    kept.push(...spans)
    if (kept.length > mostSpans) kept.splice(0, kept.length - mostSpans)
    this.#cameras.delete(first.cameraId)
    this.#cameras.set(first.cameraId, kept)
    for (const oldest of this.#cameras.keys()) {
      if (this.#cameras.size <= mostCameras) return
      this.#cameras.delete(oldest)
    }
  }

  /** Where what is kept of the camera begins; `Infinity` without any. */
  firstOf(cameraId: string): number {
    return this.#cameras.get(cameraId)?.[0]?.fromMs ?? Infinity
  }

  range({ cameraId, fromMs, toMs }: CoverageRange, most: number): Promise<readonly CoverageSpan[]> {
    const ids = cameraId === undefined ? [...this.#cameras.keys()].sort() : [cameraId]
    const found = ids.flatMap((id) =>
      (this.#cameras.get(id) ?? []).filter((span) => span.toMs > fromMs && span.fromMs < toMs),
    )
    return Promise.resolve(found.slice(0, most + 1))
  }
}
