/** A node as it was when the group formed. */
export type SlotNode = Readonly<{
  id: string
  /** Cameras it can hold, in any unit that is the same for all; 0: it takes none, it drains. */
  weight: number
  /** Slots it runs now, with the generation of its claim: a node that was away may name some that others have claimed since. */
  held: ReadonlyMap<number, number>
}>

export type SlotAssignment = ReadonlyMap<string, readonly number[]>

/** How far a node may be from its share before slots move for balance alone. */
const tolerance = 0.05

/**
 * Shares camera slots among nodes by their weights, and moves no more of them than must move.
 *
 * Slots with cameras and slots without are shared each by themselves: the first so that nodes have equal work, the second so that cameras
 * that come later find equal nodes. A slot stays where it is while its node is within 5 % of its share, or within one slot of it. Pure: the
 * same members give the same answer whatever their order, so any node may reckon it.
 *
 * @param loads - what each slot asks for, such as frames a second; 0 for a slot without cameras. As long as there are slots.
 * @returns for each node its slots in ascending order; none where all nodes drain, which then keep what they hold.
 */
export function assignSlots(nodes: readonly SlotNode[], loads: readonly number[]): SlotAssignment {
  const known = [...nodes].sort(byId)
  const takers = known.filter(({ weight }) => weight > 0)
  const among = takers.length > 0 ? takers : known.map((node) => ({ ...node, weight: 1 }))
  const holders = holdersOf(among, loads.length)
  const slots = loads.map((load, slot) => ({ slot, load, holder: holders.get(slot) }))
  const owners = new Map<number, string>()
  for (const kind of [slots.filter(({ load }) => load > 0), slots.filter(({ load }) => !(load > 0))])
    for (const [slot, id] of shared(among, kind)) owners.set(slot, id)
  const all = new Map<string, number[]>(known.map(({ id }) => [id, []]))
  for (const [slot, id] of [...owners].sort(([a], [b]) => a - b)) all.get(id)?.push(slot)
  return all
}

type Slot = Readonly<{ slot: number; load: number; holder: string | undefined }>

const byId = (a: Readonly<{ id: string }>, b: Readonly<{ id: string }>) =>
  a.id < b.id ? -1 : a.id > b.id ? 1 : 0

/** Who has each slot now: the one with the highest generation of those that say so. */
function holdersOf(nodes: readonly SlotNode[], slots: number): Map<number, string> {
  const best = new Map<number, Readonly<{ id: string; generation: number }>>()
  for (const { id, held } of nodes) {
    for (const [slot, generation] of held) {
      if (slot >= slots || generation <= (best.get(slot)?.generation ?? -1)) continue
      best.set(slot, { id, generation })
    }
  }
  return new Map([...best].map(([slot, { id }]) => [slot, id]))
}

/** A node while slots of one kind are shared. */
class Share {
  readonly slots = new Map<number, number>()
  has = 0

  constructor(
    readonly id: string,
    /** What it should have. */
    readonly due: number,
  ) {}

  /** How much more it has than it should. */
  get over(): number {
    return this.has - this.due
  }

  take(slot: number, load: number): void {
    this.slots.set(slot, load)
    this.has += load
  }

  give(slot: number): void {
    this.has -= this.slots.get(slot) ?? 0
    this.slots.delete(slot)
  }
}

function shared(nodes: readonly SlotNode[], slots: readonly Slot[]): Map<number, string> {
  const unit = (load: number) => (load > 0 ? load : 1)
  const total = slots.reduce((sum, { load }) => sum + unit(load), 0)
  const weights = nodes.reduce((sum, { weight }) => sum + weight, 0)
  const shares = nodes.map(({ id, weight }) => new Share(id, (total * weight) / weights))
  const byNode = new Map(shares.map((share) => [share.id, share]))
  const free: Slot[] = []
  for (const each of slots) {
    const holder = each.holder === undefined ? undefined : byNode.get(each.holder)
    if (holder) holder.take(each.slot, unit(each.load))
    else free.push(each)
  }
  // The heaviest first: those that are left even out what they leave.
  for (const { slot, load } of free.sort((a, b) => unit(b.load) - unit(a.load) || a.slot - b.slot))
    least(shares).take(slot, unit(load))
  if (slots.length > 0) balance(shares, total / slots.length)
  return new Map(shares.flatMap(({ id, slots: own }) => [...own.keys()].map((slot) => [slot, id] as const)))
}

const least = (shares: readonly Share[]) =>
  shares.reduce((best, each) => (each.over < best.over ? each : best))

const most = (shares: readonly Share[]) =>
  shares.reduce((best, each) => (each.over > best.over ? each : best))

/**
 * Moves slots one by one while a node is off its share and a move brings it nearer, with another that is off where there is one.
 *
 * @param slotLoad - of a usual slot: less than that is not made up by a move.
 */
function balance(shares: readonly Share[], slotLoad: number): void {
  const isOff = ({ over, due }: Share) => Math.abs(over) > Math.max(tolerance * due, slotLoad)
  const stuck = new Set<Share>()
  for (;;) {
    const off = shares.filter(isOff)
    const worst = off
      .filter((share) => !stuck.has(share))
      .reduce<Share | undefined>(
        (best, each) => (Math.abs(each.over) > Math.abs(best?.over ?? 0) ? each : best),
        undefined,
      )
    if (worst === undefined) return
    const others = off.filter(({ over }) => over * worst.over < 0)
    const among = others.length > 0 ? others : shares
    const [from, to] = worst.over > 0 ? [worst, least(among)] : [most(among), worst]
    const slot = slotToMove(from, from.over - to.over)
    if (slot === undefined) {
      stuck.add(worst)
      continue
    }
    const load = from.slots.get(slot) ?? 0
    from.give(slot)
    to.take(slot, load)
    stuck.clear()
  }
}

/** The slot whose move leaves two nodes nearest to each other; none where every one of them would only change their places. */
function slotToMove(from: Share, apart: number): number | undefined {
  let best: Readonly<{ slot: number; left: number }> | undefined
  for (const [slot, load] of from.slots) {
    const left = Math.abs(apart - 2 * load)
    // A move that gains next to nothing is none: rounding would begin it again and again.
    if (left >= apart - 1e-9 * Math.max(1, apart)) continue
    if (best === undefined || left < best.left - 1e-12 || (left <= best.left + 1e-12 && slot < best.slot))
      best = { slot, left }
  }
  return best?.slot
}
