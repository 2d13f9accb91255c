import { nowMs } from '../lifecycle/clock.js'
import { delay } from '../lifecycle/delay.js'
import type { SlotClaim } from './slot-claim.js'

const askEveryMs = 250
/** Longest, from its claim, for a node to show pictures of cameras that show some here. */
const shownWithinMs = 5_000
/** The same of one that does not say how its cameras stand. */
const silentMs = 1_500

export type SuccessorsDeps = Readonly<{
  /** Who has claimed which slot last. @throws where the brokers do not say */
  claims: () => Promise<ReadonlyMap<number, SlotClaim>>
  /** Cameras that are live on this node, by slot. */
  liveHere: () => ReadonlyMap<number, readonly string[]>
  /** Those that are live on another; undefined where it does not say. Never rejects. */
  liveOn: (node: string) => Promise<ReadonlySet<string> | undefined>
}>

/**
 * Waits until others have claimed slots, and show the cameras of them that are live here: until then this node goes on with them, so that no camera
 * is without a node. Where the brokers do not say who has claimed them, nobody has.
 *
 * @param held - slots and the generation of this node's claim.
 * @param taken - told of slots as others have them.
 * @param wasOut - this node was silent for a while: those that others have claimed by now they may have had for long.
 */
export async function succeeded(
  held: ReadonlyMap<number, number>,
  deps: SuccessorsDeps,
  taken: (slots: readonly number[]) => void,
  signal: AbortSignal,
  wasOut = false,
): Promise<void> {
  const left = new Map(held)
  const claimedMs = new Map<number, number>()
  for (let isLate = wasOut; ;) {
    const claims = await deps.claims().catch(() => undefined)
    const byNode = new Map<string, number[]>()
    for (const [slot, generation] of left) {
      const claim = claims?.get(slot)
      if (claim === undefined || claim.generation <= generation) continue
      if (!claimedMs.has(slot)) claimedMs.set(slot, nowMs())
      byNode.set(claim.node, [...(byNode.get(claim.node) ?? []), slot])
    }
    const here = deps.liveHere()
    const each = [...byNode].map(async ([node, slots]) => {
      const live = await deps.liveOn(node)
      return slots.filter((slot) => {
        const isShown = (here.get(slot) ?? []).every((id) => live?.has(id))
        const waitedMs = nowMs() - (claimedMs.get(slot) ?? 0)
        return isLate || isShown || waitedMs > (live === undefined ? silentMs : shownWithinMs)
      })
    })
    const done = (await Promise.all(each)).flat()
    if (signal.aborted) return
    if (claims !== undefined) isLate = false
    for (const slot of done) left.delete(slot)
    if (done.length > 0) taken(done)
    if (left.size === 0 || !(await delay(askEveryMs, signal))) return
  }
}
