import { describe, expect, it } from 'vitest'
import { assignSlots, type SlotAssignment, type SlotNode } from '../../src/cluster/assign-slots.js'

/** Park and Miller's generator: the same cases each time. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647
}

function fresh(count: number, weight: (index: number) => number = () => 1): SlotNode[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `node-${String(index).padStart(3, '0')}`,
    weight: weight(index),
    held: new Map(),
  }))
}

/** The same nodes once they hold what they were given. */
function holding(nodes: readonly SlotNode[], assignment: SlotAssignment, generation = 1): SlotNode[] {
  return nodes.map((node) => ({
    ...node,
    held: new Map((assignment.get(node.id) ?? []).map((slot) => [slot, generation])),
  }))
}

const ones = (slots: number) => Array.from({ length: slots }, () => 1)
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

/** Slots that another node has than before. */
function moves(before: readonly SlotNode[], after: SlotAssignment): number {
  const holders = new Map(before.flatMap(({ id, held }) => [...held.keys()].map((slot) => [slot, id])))
  return sum([...after].map(([id, slots]) => slots.filter((slot) => (holders.get(slot) ?? id) !== id).length))
}

/** The fewest moves that leave each node within 5 % of its share or within one slot of it, with slots that are alike; those that nobody holds do not count. */
function fewestMoves(before: readonly SlotNode[], slots: number): number {
  const weights = sum(before.map(({ weight }) => weight))
  const free = slots - sum(before.map(({ held }) => held.size))
  const bands = before.map(({ weight, held }) => {
    const due = (slots * weight) / weights
    return {
      has: held.size,
      low: Math.min(Math.ceil(0.95 * due), Math.ceil(due - 1)),
      high: Math.max(Math.floor(1.05 * due), Math.floor(due + 1)),
    }
  })
  const tooMany = sum(bands.map(({ has, high }) => Math.max(0, has - high)))
  const tooFew = sum(bands.map(({ has, low }) => Math.max(0, low - has)))
  return Math.max(tooMany, tooFew - free)
}

/** Largest distance of a node from its share, in slots and relative to the share. */
function imbalance(nodes: readonly SlotNode[], after: SlotAssignment, loads: readonly number[]) {
  const weights = sum(nodes.map(({ weight }) => weight))
  const off = nodes.map(({ id, weight }) => {
    const due = (sum(loads) * weight) / weights
    const has = sum((after.get(id) ?? []).map((slot) => loads[slot] ?? 0))
    return { slots: Math.abs(has - due), share: Math.abs(has - due) / due }
  })
  return {
    slots: Math.max(...off.map(({ slots }) => slots)),
    share: Math.max(...off.map(({ share }) => share)),
  }
}

function expectWhole(after: SlotAssignment, slots: number): void {
  const all = [...after.values()].flat().sort((a, b) => a - b)
  expect(all).toEqual(Array.from({ length: slots }, (_, slot) => slot))
}

/** Within 5 % of its share, or one slot where that is more, which it is below 20 slots a node. */
function expectBalanced(nodes: readonly SlotNode[], after: SlotAssignment, slots: number): void {
  const weights = sum(nodes.map(({ weight }) => weight))
  for (const { id, weight } of nodes) {
    const due = (slots * weight) / weights
    const off = Math.abs((after.get(id)?.length ?? 0) - due)
    expect(off).toBeLessThanOrEqual(Math.max(1, 0.05 * due) + 1e-9)
  }
}

describe('assignSlots', () => {
  it('gives each slot to one node, evenly', () => {
    for (const [count, slots] of [
      [1, 256],
      [3, 256],
      [5, 256],
      [7, 16],
      [200, 4_096],
      [40, 8],
    ] as const) {
      const nodes = fresh(count)
      const after = assignSlots(nodes, ones(slots))
      expectWhole(after, slots)
      expectBalanced(nodes, after, slots)
    }
  })

  it('has nothing for some nodes where there are more of them than slots', () => {
    const after = assignSlots(fresh(5), ones(3))
    expect([...after.values()].map(({ length }) => length).sort()).toEqual([0, 0, 1, 1, 1])
  })

  it('weighs nodes by what they can hold', () => {
    const nodes = fresh(3, (index) => [1, 2, 5][index] ?? 0)
    const after = assignSlots(nodes, ones(800))
    expect(imbalance(nodes, after, ones(800)).share).toBeLessThan(0.01)
  })

  it('is the same whatever the order of the members', () => {
    const nodes = holding(fresh(5), assignSlots(fresh(4), ones(64)))
    expect([...assignSlots([...nodes].reverse(), ones(64))]).toEqual([...assignSlots(nodes, ones(64))])
  })

  it('moves nothing where nothing has changed, nor where weights differ a little', () => {
    const nodes = holding(fresh(6), assignSlots(fresh(6), ones(256)))
    expect(moves(nodes, assignSlots(nodes, ones(256)))).toBe(0)
    const random = randomFrom(7)
    const wobbling = nodes.map((node) => ({ ...node, weight: 1 + 0.03 * (random() - 0.5) }))
    expect(moves(wobbling, assignSlots(wobbling, ones(256)))).toBe(0)
  })

  it('gives the slots of a node that died to the others, and moves no other', () => {
    const nodes = holding(fresh(5), assignSlots(fresh(5), ones(256)))
    const left = nodes.slice(1)
    const after = assignSlots(left, ones(256))
    expectWhole(after, 256)
    expect(moves(left, after)).toBe(0)
    expectBalanced(left, after, 256)
  })

  it('empties a node that drains, and leaves all where they are when every node drains', () => {
    const nodes = holding(fresh(4), assignSlots(fresh(4), ones(256)))
    const draining = nodes.map((node, index) => (index === 2 ? { ...node, weight: 0 } : node))
    const after = assignSlots(draining, ones(256))
    expect(after.get('node-002')).toEqual([])
    expect(moves(draining, after)).toBe(nodes[2]?.held.size)
    const all = nodes.map((node) => ({ ...node, weight: 0 }))
    expect(moves(all, assignSlots(all, ones(256)))).toBe(0)
  })

  it('believes the later claim of a slot that two nodes say they hold', () => {
    const nodes = fresh(2)
    const [first, second] = [nodes[0]!, nodes[1]!]
    const after = assignSlots(
      [
        { ...first, held: new Map([[0, 3], [1, 3]]) }, // prettier-ignore
        { ...second, held: new Map([[0, 4], [2, 1]]) }, // prettier-ignore
      ],
      ones(4),
    )
    expect(after.get(second.id)).toContain(0)
    expect(after.get(first.id)).toContain(1)
  })

  it('passes over slots that are not there and loads that are no numbers', () => {
    const [node] = fresh(1)
    const after = assignSlots([{ ...node!, held: new Map([[9, 1], [1, 1]]) }], [1, Number.NaN, 0]) // prettier-ignore
    expect(after.get(node!.id)).toEqual([0, 1, 2])
  })

  it('shares work, not only slots: slots with cameras and slots without each by themselves', () => {
    const random = randomFrom(3)
    for (let round = 0; round < 50; round += 1) {
      const loads = Array.from({ length: 256 }, () => (random() < 0.2 ? Math.ceil(random() * 4) * 5 : 0))
      const nodes = fresh(2 + Math.floor(random() * 5))
      const after = assignSlots(nodes, loads)
      expectWhole(after, 256)
      expect(imbalance(nodes, after, loads).slots).toBeLessThanOrEqual(
        Math.max(20, 0.05 * (sum(loads) / nodes.length)),
      )
      const empty = loads.map((load) => (load > 0 ? 0 : 1))
      expect(imbalance(nodes, after, empty).slots).toBeLessThanOrEqual(
        Math.max(1, 0.05 * (sum(empty) / nodes.length)) + 1e-9,
      )
    }
  })

  it('stays balanced and moves little over any history of joins, deaths, drains and weights', () => {
    const random = randomFrom(11)
    let [moved, fewest] = [0, 0]
    for (let history = 0; history < 40; history += 1) {
      const slots = [64, 256, 1_024][history % 3] ?? 64
      let nodes = fresh(1 + Math.floor(random() * 12))
      nodes = holding(nodes, assignSlots(nodes, ones(slots)))
      for (let step = 0; step < 25; step += 1) {
        const kind = random()
        if (kind < 0.4 || nodes.length < 2)
          nodes = [...nodes, { id: `joined-${history}-${step}`, weight: 0.5 + random() * 2, held: new Map() }]
        else if (kind < 0.7) nodes = nodes.toSpliced(Math.floor(random() * nodes.length), 1)
        else {
          const index = Math.floor(random() * nodes.length)
          nodes = nodes.map((node, at) => (at === index ? { ...node, weight: 0.5 + random() * 2 } : node))
        }
        const after = assignSlots(nodes, ones(slots))
        expectWhole(after, slots)
        expectBalanced(nodes, after, slots)
        const [now, least] = [moves(nodes, after), fewestMoves(nodes, slots)]
        moved += now
        fewest += least
        expect(now).toBeLessThanOrEqual(Math.max(least + 1, 1.2 * least))
        nodes = holding(nodes, after, step + 2)
      }
    }
    expect(moved).toBeLessThanOrEqual(1.2 * fewest)
  })

  it('reckons 200 nodes and 20,000 cameras', () => {
    const slots = 8_192
    const random = randomFrom(5)
    const loads = Array.from({ length: slots }, () => 0)
    for (let camera = 0; camera < 20_000; camera += 1) {
      const slot = Math.floor(random() * slots)
      loads[slot] = (loads[slot] ?? 0) + 5
    }
    let nodes = fresh(200, (index) => 80 + (index % 5) * 10)
    nodes = holding(nodes, assignSlots(nodes, loads))
    const dead = nodes.slice(3)
    const after = assignSlots(dead, loads)
    expectWhole(after, slots)
    expect(imbalance(dead, after, loads).share).toBeLessThanOrEqual(0.05 + 1e-9)
    const lost = sum(nodes.slice(0, 3).map(({ held }) => held.size))
    expect(moves(dead, after)).toBeLessThanOrEqual(0.2 * lost)
    const joined = [...dead, ...fresh(2).map((node) => ({ ...node, id: `new-${node.id}`, weight: 100 }))]
    expectWhole(assignSlots(joined, loads), slots)
  })
})
