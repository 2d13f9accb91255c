import { describe, expect, it } from 'vitest'
import { MemoryCache } from '../../src/cache/memory-cache.js'
import type { RecentPage, RecentQuery } from '../../src/cache/result-cache.js'
import { mergePages, pageFromMs } from '../../src/cluster/merge-pages.js'
import { createServiceMetrics } from '../../src/metrics/service-metrics.js'
import { detectionsMessage, textOf } from '../support/detections.js'

const nowMs = Date.now()
const result = (cameraId: string, seq: number, agoMs: number, label = 'person') =>
  detectionsMessage({
    ...{ cameraId, seq, capturedAtMs: nowMs - agoMs },
    detections: [{ label, score: 0.9, boxPx: { x1: 0, y1: 0, x2: 1, y2: 1 } }],
  })
const nameOf = ({ cameraId, seq }: { cameraId: string; seq: number }) => `${cameraId}/${seq}`

/** A node: what it keeps is asked for as over HTTP. */
function node(...results: readonly ReturnType<typeof result>[]): MemoryCache {
  const limits = { ttlSeconds: 60, recentPerCamera: 1_000, recentTtlSeconds: 600 }
  const cache = new MemoryCache(limits, createServiceMetrics())
  cache.start()
  for (const one of results) cache.put(textOf(one))
  return cache
}

async function pageOf(nodes: readonly MemoryCache[], query: RecentQuery): Promise<RecentPage> {
  return mergePages(await Promise.all(nodes.map((each) => each.recent(query))), query.limit)
}

/** All results, page by page. @param between - what happens after each page. */
async function pagesOf(
  nodes: readonly MemoryCache[],
  query: RecentQuery,
  between = () => undefined as unknown,
) {
  const found: string[] = []
  for (let cursor: string | undefined; ;) {
    const page = await pageOf(nodes, { ...query, ...(cursor !== undefined && { cursor }) })
    expect(page.items.length).toBeLessThanOrEqual(query.limit)
    found.push(...page.items.map(nameOf))
    cursor = page.nextCursor
    if (cursor === undefined) return found
    expect(cursor.length).toBeLessThan(160)
    between()
  }
}

describe('pages of several nodes', () => {
  it.each([1, 2, 7, 100])('R175: are all results once, newest first, in pages of %i', async (limit) => {
    // Several at one time, and one camera that was with two nodes.
    const all = Array.from({ length: 90 }, (_, index) =>
      result(`cam-${index % 4}`, index, 1_000 + Math.floor(index / 3) * 100),
    )
    const nodes = [0, 1, 2].map((at) => node(...all.filter((_, index) => (index * 7) % 3 === at)))
    const expected = (await node(...all).recent({ limit: 1_000 })).items.map(nameOf)
    expect(await pagesOf([...nodes, node()], { limit })).toEqual(expected)
  })

  it('R175: lose none and give none twice while new ones come, on whatever node a page is asked for', async () => {
    const [first, second] = [node(), node()]
    for (let index = 0; index < 40; index += 1)
      (index % 3 === 0 ? first : second).put(textOf(result('dock', index, 5_000 - index)))
    const expected = (await pageOf([first, second], { limit: 1_000 })).items.map(nameOf)
    let more = 100
    const found = await pagesOf([second, first], { limit: 6 }, () => {
      first.put(textOf(result('dock', (more += 1), 4_000 - more)))
      second.put(textOf(result('gate', (more += 1), 4_000 - more)))
    })
    expect(found).toEqual(expected)
  })

  it('give what nodes share in one Redis once', async () => {
    const shared = node(result('a', 1, 30), result('a', 2, 20), result('a', 3, 10))
    expect(await pagesOf([shared, shared], { limit: 2 })).toEqual(['a/3', 'a/2', 'a/1'])
  })

  it('wait with what lies below the cursor of a node that has looked no further', async () => {
    const [old, middle, young] = [result('a', 1, 30), result('b', 2, 20), result('a', 3, 10)]
    const looked = (await node(young, old).recent({ limit: 1 })).nextCursor!
    const page = mergePages([{ items: [], nextCursor: looked }, { items: [young, middle, old] }], 10)
    expect(page).toEqual({ items: [young], nextCursor: looked })
    expect(pageFromMs(page)).toBe(nowMs - 10)
    expect(pageFromMs({ items: [young] })).toBe(0)
    expect(mergePages([], 10)).toEqual({ items: [] })
  })
})
