import { useEffect, useState } from 'preact/hooks'
import { api, type Snapshot } from '../api/client.js'

/** From one picture to the next question: most cameras have a new key frame every second or two. */
const pauseMs = 1_000
/** The same where the camera has to be asked for each picture: it has few sessions to give. */
const sessionPauseMs = 5_000
/** Longest until the next question after those that brought nothing. */
const longestPauseMs = 30_000
/** How far a picture may be behind the live one: whoever looks at a camera wants to see now, sharp or not. */
const oldestMs = 5_000

export type Snapshots = Readonly<{
  /** Address of the newest, for an `<img>`; it holds until the next one is there. Absent: the live picture is to be shown. */
  url?: string
  facts?: Snapshot['facts']
  /** Why there is none; empty when all is well, or the first is on its way. */
  trouble: string
}>

export type SnapshotWishes = Readonly<{
  overlay: boolean
  /** The camera is asked for each. */
  opensSession: boolean
  /** When the live picture was taken, wall time of the service. */
  liveMs: () => number | undefined
}>

const notLarger = 'Live: no larger picture of this camera is at hand.'
const tooRare = 'Live: this camera sends a whole picture (a key frame) too rarely.'
const tooSlow = 'Live: larger pictures take too long to come.'

/**
 * Pictures of a camera in its own resolution, one after the other, as long as they are wanted and the page is seen: at most one a second, and
 * no more than half of the time of a slow line. A picture that is there is not sent again.
 */
export function useSnapshots(
  cameraId: string,
  isWanted: boolean,
  { overlay, opensSession, liveMs }: SnapshotWishes,
): Snapshots {
  const [shown, show] = useState<Snapshots>({ trouble: '' })
  useEffect(() => {
    if (!isWanted) return undefined
    const ended = new AbortController()
    let has: Readonly<{ url: string; etag: string | undefined; capturedAtMs: number }> | undefined
    let misses = 0
    let lateInARow = 0
    let timer: ReturnType<typeof setTimeout> | undefined

    const leave = (): void => {
      const before = has?.url
      has = undefined
      // An image may be about to load it.
      if (before !== undefined) setTimeout(() => URL.revokeObjectURL(before), pauseMs)
    }
    const live = (trouble: string): void => {
      misses += 1
      leave()
      show({ trouble })
    }
    const isBehind = (nowMs: number | undefined): boolean =>
      has !== undefined && nowMs !== undefined && nowMs - has.capturedAtMs > oldestMs
    const take = async (): Promise<void> => {
      const askedMs = liveMs()
      const taken = await api.snapshot(cameraId, { overlay, unless: has?.etag }, ended.signal)
      if (taken !== 'known') {
        if (!taken.facts.isOwn) return live(notLarger)
        const { blob, etag, facts } = taken
        leave()
        has = { url: URL.createObjectURL(blob), etag, capturedAtMs: Date.parse(facts.capturedAt ?? '') }
        show({ url: has.url, facts, trouble: '' })
      }
      misses = 0
      lateInARow = isBehind(askedMs) ? lateInARow + 1 : 0
      if (lateInARow > 0) {
        live(tooRare)
        // It would come and go. Once it may be a hiccup.
        if (lateInARow > 1) misses = Infinity
      } else if (isBehind(liveMs())) live(tooSlow)
    }
    const next = async (): Promise<void> => {
      const beganMs = performance.now()
      const slow = setInterval(() => {
        if (isBehind(liveMs())) live(tooSlow)
      }, pauseMs)
      try {
        if (!document.hidden) await take()
      } catch (error) {
        if (ended.signal.aborted) return
        live(`Live: ${error instanceof Error ? error.message : 'no picture came.'}`)
      } finally {
        clearInterval(slow)
      }
      if (misses === Infinity || ended.signal.aborted) return
      const least = misses > 0 ? pauseMs * 2 ** misses : opensSession ? sessionPauseMs : pauseMs
      const tookMs = performance.now() - beganMs
      timer = setTimeout(() => void next(), Math.min(longestPauseMs, Math.max(least, tookMs)))
    }
    void next()
    return () => {
      ended.abort()
      clearTimeout(timer)
      leave()
      show({ trouble: '' })
    }
  }, [cameraId, isWanted, overlay, opensSession])
  return shown
}
