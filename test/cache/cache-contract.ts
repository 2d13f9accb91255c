import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { DetectionsMessage } from '../../src/messages/detections-message.js'
import type { RecentPage, RecentQuery, ResultCache } from '../../src/cache/result-cache.js'
import { detectionsMessage, detectionsText, textOf } from '../support/detections.js'
import { until } from '../support/until.js'

export type ContractLimits = Readonly<{
  ttlSeconds: number
  recentPerCamera: number
  recentTtlSeconds: number
}>

const boxPx = { x1: 1, y1: 2, x2: 3, y2: 4 }
const labelled = (...labels: string[]) => labels.map((label) => ({ label, score: 0.5, boxPx }))

/** Pages of a query until there is no cursor. */
export async function allPages(cache: ResultCache, query: RecentQuery): Promise<RecentPage[]> {
  const pages: RecentPage[] = []
  let cursor: string | undefined
  do {
    const page = await cache.recent({ ...query, ...(cursor === undefined ? {} : { cursor }) })
    pages.push(page)
    cursor = page.nextCursor
  } while (cursor !== undefined && pages.length < 1_000)
  return pages
}

const seqs = (items: readonly DetectionsMessage[]) => items.map(({ cameraId, seq }) => `${cameraId}:${seq}`)

/** What every {@link ResultCache} does, whatever is behind it. `create` gives a started cache with nothing in it. */
export function describeResultCache(
  name: string,
  create: (limits: ContractLimits) => Promise<{ cache: ResultCache; end: () => Promise<void> }>,
): void {
  const limits = { ttlSeconds: 60, recentPerCamera: 50, recentTtlSeconds: 3600 }

  describe(name, () => {
    let cache: ResultCache
    let end: () => Promise<void>
    const open = async (overrides: Partial<ContractLimits> = {}) => {
      await end()
      ;({ cache, end } = await create({ ...limits, ...overrides }))
    }
    beforeEach(async () => ({ cache, end } = await create(limits)))
    afterEach(() => end())

    const stored = (message: DetectionsMessage) =>
      until('the result is stored', async () => (await cache.latest(message.cameraId))?.seq === message.seq)

    /** Two cameras, 20 results each, one second apart, every fifth with a bare head. */
    const baseMs = Date.now() - 100_000
    async function fill(): Promise<void> {
      for (let seq = 1; seq <= 20; seq += 1)
        for (const cameraId of ['dock-1', 'gate'])
          cache.put(
            detectionsText({
              cameraId,
              seq,
              capturedAtMs: baseMs + seq * 1_000,
              detections: labelled('helmet', ...(seq % 5 === 0 ? ['head'] : [])),
            }),
          )
      await stored(detectionsMessage({ cameraId: 'gate', seq: 20 }))
      await stored(detectionsMessage({ cameraId: 'dock-1', seq: 20 }))
    }

    it('gives the latest result of a camera, unchanged, and nothing for a camera it never saw', async () => {
      const first = detectionsMessage({ seq: 1 })
      const second = detectionsMessage({ seq: 2 })
      cache.put(textOf(first))
      cache.put(textOf(second))
      await stored(second)
      expect(await cache.latest('dock-1')).toEqual(second)
      expect(await cache.latest('gate')).toBeUndefined()
    })

    it('gives recent results newest first, of one camera or of all', async () => {
      await fill()
      const all = await cache.recent({ limit: 5 })
      expect(seqs(all.items)).toEqual(['gate:20', 'dock-1:20', 'gate:19', 'dock-1:19', 'gate:18'])
      expect(seqs((await cache.recent({ limit: 3, cameraId: 'dock-1' })).items)).toEqual([
        'dock-1:20',
        'dock-1:19',
        'dock-1:18',
      ])
      expect((await cache.recent({ limit: 3, cameraId: 'nobody' })).items).toEqual([])
    })

    it('pages through everything once, without cursor on the last page', async () => {
      await fill()
      const pages = await allPages(cache, { limit: 7 })
      expect(pages.flatMap(({ items }) => seqs(items))).toEqual(
        Array.from({ length: 20 }, (_, i) => [`gate:${20 - i}`, `dock-1:${20 - i}`]).flat(),
      )
      expect(pages.slice(0, -1).every(({ items }) => items.length === 7)).toBe(true)
      expect((await cache.recent({ limit: 40 })).nextCursor).toBeUndefined()
      expect((await cache.recent({ limit: 39 })).nextCursor).toBeDefined()
    })

    it('keeps its place while newer results arrive between two pages', async () => {
      await fill()
      const first = await cache.recent({ limit: 2, cameraId: 'gate' })
      const newer = detectionsMessage({ cameraId: 'gate', seq: 21, capturedAtMs: baseMs + 30_000 })
      cache.put(textOf(newer))
      await stored(newer)
      const second = await cache.recent({ limit: 2, cameraId: 'gate', cursor: first.nextCursor ?? '' })
      expect(seqs(second.items)).toEqual(['gate:18', 'gate:17'])
    })

    it('filters by label and by time range, both ends included', async () => {
      await fill()
      const heads = await allPages(cache, { limit: 3, label: 'head' })
      expect(heads.flatMap(({ items }) => seqs(items))).toEqual(
        [20, 15, 10, 5].flatMap((seq) => [`gate:${seq}`, `dock-1:${seq}`]),
      )
      expect((await cache.recent({ limit: 3, label: 'hea' })).items).toEqual([])
      const range = { fromMs: baseMs + 3_000, toMs: baseMs + 5_000, cameraId: 'gate' }
      expect(seqs((await cache.recent({ limit: 10, ...range })).items)).toEqual([
        'gate:5',
        'gate:4',
        'gate:3',
      ])
      expect((await cache.recent({ limit: 10, fromMs: baseMs + 90_000 })).items).toEqual([])
    })

    it('keeps no more than the window, and drops the oldest', async () => {
      await open({ recentPerCamera: 5 })
      await fill()
      expect(seqs((await cache.recent({ limit: 100, cameraId: 'gate' })).items)).toEqual(
        [20, 19, 18, 17, 16].map((seq) => `gate:${seq}`),
      )
      expect((await cache.recent({ limit: 100 })).items).toHaveLength(10)
    })

    it('forgets recent results by age', async () => {
      await open({ recentTtlSeconds: 90 })
      await fill()
      const { items } = await cache.recent({ limit: 100, cameraId: 'gate' })
      expect(items.length).toBeGreaterThan(0)
      expect(items.length).toBeLessThan(20)
      expect(items.every(({ capturedAt }) => Date.parse(capturedAt) > Date.now() - 91_000)).toBe(true)
    })

    it('forgets the latest result of a silent camera', async () => {
      await open({ ttlSeconds: 1 })
      const message = detectionsMessage()
      cache.put(textOf(message))
      await stored(message)
      await until('the result expires', async () => (await cache.latest('dock-1')) === undefined, 5_000)
    })

    it('forgets a camera and nothing else', async () => {
      await fill()
      await cache.forget('gate')
      expect(await cache.latest('gate')).toBeUndefined()
      const { items } = await cache.recent({ limit: 100 })
      expect(new Set(items.map(({ cameraId }) => cameraId))).toEqual(new Set(['dock-1']))
      expect(items).toHaveLength(20)
    })

    it.each(['', 'x', 'AAAA', Buffer.from('1:gate:2').toString('base64url')])(
      'refuses "%s" as a cursor',
      async (cursor) => {
        await expect(cache.recent({ limit: 1, cursor })).rejects.toMatchObject({ code: 'GANTRY_CURSOR' })
      },
    )

    it('reports itself up, and stopped after stop', async () => {
      expect(cache.health.state).toBe('up')
      await cache.stop()
      await cache.stop()
      expect(cache.health.state).toBe('stopped')
      expect(() => cache.put(detectionsText())).not.toThrow()
    })
  })
}
