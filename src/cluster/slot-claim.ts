import { z } from 'zod'
import { wallMs } from '../lifecycle/clock.js'

/**
 * Who runs a slot, as its node wrote it beside the committed offset of the slot's partition: only a member of the group as it is now can
 * commit there, so that a node which was put out cannot claim.
 */
export type SlotClaim = Readonly<{
  node: string
  /** Grows with each claim of a slot. What a camera's owner publishes bears it, so that what a former owner still sends can be told apart. */
  generation: number
}>

const schema = z.object({ node: z.string(), generation: z.number().int().min(0) })

/** @returns undefined where nobody has claimed yet. */
export function parseClaim(metadata: string | null | undefined): SlotClaim | undefined {
  if (!metadata) return undefined
  try {
    return schema.parse(JSON.parse(metadata))
  } catch {
    return undefined
  }
}

/**
 * The next claim of a slot. Generations are seconds of wall time where these are higher: brokers forget offsets of a group that was away
 * for long, and numbers that began anew would be taken for those of a former owner.
 */
export function nextClaim(node: string, before: SlotClaim | undefined, atMs = wallMs()): SlotClaim {
  return { node, generation: Math.max((before?.generation ?? 0) + 1, Math.floor(atMs / 1_000)) }
}
