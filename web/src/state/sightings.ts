import type { DetectionsMessage } from '../api/types.js'
import { isDanger } from '../../../src/vision/label-colors.js'

export type LabelCount = Readonly<{ label: string; count: number; bestScore: number }>

/** A stretch in which a camera saw the same things: one line of the list instead of five a second. */
export type Sighting = Readonly<{
  kind: 'sighting'
  key: string
  cameraId: string
  labels: readonly LabelCount[]
  firstAtMs: number
  lastAtMs: number
  frames: number
}>

/** Results the server could not deliver to this page. */
export type Gap = Readonly<{ kind: 'gap'; key: string; atMs: number; dropped: number; reason: string }>

export type Entry = Sighting | Gap

const kept = 400

/** The newest sightings, newest first. */
export class Sightings {
  readonly #entries: Entry[] = []
  readonly #current = new Map<string, Sighting>()
  #count = 0

  get entries(): readonly Entry[] {
    return [...this.#entries].reverse()
  }

  add(message: DetectionsMessage): void {
    const labels = countLabels(message.detections)
    const atMs = Date.parse(message.capturedAt)
    const current = this.#current.get(message.cameraId)
    if (current !== undefined && sameThings(current.labels, labels)) {
      const index = this.#entries.lastIndexOf(current)
      const longer = {
        ...current,
        labels,
        lastAtMs: Math.max(atMs, current.lastAtMs),
        frames: current.frames + 1,
      }
      if (index >= 0) this.#entries[index] = longer
      this.#current.set(message.cameraId, longer)
      return
    }
    this.#count += 1
    const sighting: Sighting = {
      kind: 'sighting',
      key: `s${this.#count}`,
      cameraId: message.cameraId,
      labels,
      firstAtMs: atMs,
      lastAtMs: atMs,
      frames: 1,
    }
    this.#current.set(message.cameraId, sighting)
    if (labels.length > 0) this.#push(sighting)
  }

  gap(atMs: number, dropped: number, reason: string): void {
    this.#count += 1
    this.#push({ kind: 'gap', key: `g${this.#count}`, atMs, dropped, reason })
  }

  /** Lets go of a camera that was removed; its lines stay, they happened. */
  forget(cameraId: string): void {
    this.#current.delete(cameraId)
  }

  #push(entry: Entry): void {
    this.#entries.push(entry)
    if (this.#entries.length > kept) this.#entries.shift()
  }
}

/** Labels of one result with how many there are: what calls for a look first, then most first. */
export function countLabels(detections: DetectionsMessage['detections']): LabelCount[] {
  const counts = new Map<string, { count: number; bestScore: number }>()
  for (const { label, score } of detections) {
    const seen = counts.get(label) ?? { count: 0, bestScore: 0 }
    counts.set(label, { count: seen.count + 1, bestScore: Math.max(seen.bestScore, score) })
  }
  return [...counts]
    .map(([label, seen]) => ({ label, ...seen }))
    .sort((a, b) => urgency(b) - urgency(a) || b.count - a.count || a.label.localeCompare(b.label))
}

function urgency({ label }: Readonly<{ label: string }>): number {
  return Number(isDanger(label))
}

function sameThings(a: readonly LabelCount[], b: readonly LabelCount[]): boolean {
  return (
    a.length === b.length && a.every(({ label, count }, i) => b[i]?.label === label && b[i].count === count)
  )
}

/**
 * Whether an entry has to do with every word: camera id or one of its labels, as programs write them (`no_vest`) or as people do ("no vest").
 * Gaps concern everyone.
 */
export function matches(entry: Entry, filter: string): boolean {
  if (entry.kind === 'gap') return true
  const words = filter
    .toLowerCase()
    // Two words, but of one label: alone "no" would find any other that begins so.
    .replaceAll(/\b(no|without)\s+(?=\S)/g, '$1_')
    .split(/\s+/)
    .map(plain)
    .filter((word) => word !== '')
  const texts = [entry.cameraId, ...entry.labels.map(({ label }) => label)].map((text) =>
    plain(text.toLowerCase()),
  )
  return words.every((word) => texts.some((text) => text.includes(word)))
}

function plain(text: string): string {
  return text.replaceAll(/[\s_-]+/g, ' ')
}
