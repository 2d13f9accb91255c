import { z } from 'zod'
import { mostSlots } from '../config/cluster.js'
import type { NodeCapacity } from './node-weights.js'

/** What a node tells the group of itself whenever the group forms. */
export type MemberData = Readonly<{
  /** Name of the node, the same over restarts. */
  node: string
  /** Where its HTTP is for the other nodes, without a path. */
  url: string
  version: string
  capacity: NodeCapacity
  /** What all nodes of a cluster must have alike, in words: nodes with another text are no nodes of this cluster. */
  layout: string
  /** What runs for its cameras, in words that tell other files, too; empty where that is not known. */
  models: string
  /** Slots that it runs, with the generation of its claim. */
  held: ReadonlyMap<number, number>
}>

const schema = z.object({
  node: z.string().min(1),
  url: z.string(),
  version: z.string(),
  capacity: z.object({ cores: z.number().min(1), framesPerSecond: z.number().min(0).nullable() }),
  layout: z.string(),
  models: z.string(),
  held: z.record(z.string().regex(/^\d+$/), z.string()),
})

/** Slots of one claim are told as ranges: there may be thousands, and brokers keep this beside each member. */
export function encodeMemberData({ held, ...data }: MemberData): Buffer {
  const byGeneration = new Map<number, number[]>()
  for (const [slot, generation] of held) {
    const alike = byGeneration.get(generation)
    if (alike === undefined) byGeneration.set(generation, [slot])
    else alike.push(slot)
  }
  const ranges = [...byGeneration].map(([generation, slots]) => [String(generation), rangesOf(slots)])
  return Buffer.from(JSON.stringify({ ...data, held: Object.fromEntries(ranges) as Record<string, string> }))
}

/** @returns undefined for what no node of ours has written. */
export function decodeMemberData(bytes: Buffer): MemberData | undefined {
  try {
    const { held, ...data } = schema.parse(JSON.parse(bytes.toString('utf8')))
    const slots = Object.entries(held).flatMap(([generation, ranges]) =>
      slotsOf(ranges).map((slot) => [slot, Number(generation)] as const),
    )
    return { ...data, held: new Map(slots) }
  } catch {
    return undefined
  }
}

/** `0-2,5` of 0, 1, 2 and 5. */
export function rangesOf(slots: readonly number[]): string {
  const ranges: [number, number][] = []
  for (const slot of [...slots].sort((a, b) => a - b)) {
    const last = ranges.at(-1)
    if (last?.[1] === slot - 1) last[1] = slot
    else ranges.push([slot, slot])
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(',')
}

function slotsOf(ranges: string): number[] {
  if (ranges === '') return []
  return ranges.split(',').flatMap((range) => {
    const [, from, to = from] = /^(\d+)(?:-(\d+))?$/.exec(range) ?? []
    const [first, last] = [Number(from), Number(to)]
    if (!(last >= first && last < mostSlots)) throw new RangeError(`no slots: ${range}`)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
}
