import { afterEach, describe, expect, it, vi } from 'vitest'
import type { OutgoingRecord } from '../../src/delivery/record-queue.js'
import type { RecordLink } from '../../src/delivery/record-link.js'
import { RefusalSearch } from '../../src/delivery/refusal-search.js'
import { RecordsRefusedError } from '../../src/delivery/refusal.js'
import { kafkaFailure } from '../../src/delivery/kafka/kafka-errors.js'
import { queuedRecord } from '../support/queued-record.js'

afterEach(() => vi.restoreAllMocks())

const records = (ids: string) => ids.split(' ').map(queuedRecord)

/**
 * A broker as Kafka's: it takes or refuses all that a send has for a partition, and the send fails with the first refusal. What it has
 * of a partition comes again as the same batch, and counts once.
 *
 * @param refuses - the error for a record, if any.
 */
function broker(
  refuses: (id: string) => string | undefined,
  partitionOf = ({ cameraId }: OutgoingRecord) => cameraId,
) {
  const log: string[] = []
  const sends: string[] = []
  const taken: string[] = []
  const rejected: string[] = []
  const link = {
    partitionOf,
    close: () => undefined,
    send: async (given: readonly OutgoingRecord[]): Promise<void> => {
      sends.push(given.map(({ id }) => id).join(' '))
      const errors: string[] = []
      for (const partition of new Set(given.map(partitionOf))) {
        const ids = given.filter((one) => partitionOf(one) === partition).map(({ id }) => id)
        const error = ids.map(refuses).find((found) => found !== undefined)
        if (error === undefined) log.push(...ids.filter((id) => !log.includes(id)))
        else errors.push(error)
      }
      const [type] = errors
      if (type !== undefined) throw Object.assign(new Error(type), { type })
    },
  }
  const deliver = (ids: string, maxDoubts = 4) =>
    new RefusalSearch(link, 1_000, maxDoubts, kafkaFailure, {
      taken: (some) => taken.push(...some.map(({ id }) => id)),
      rejected: async ({ id }, { reason }) => void rejected.push(`${id} ${reason}`),
    }).deliver(records(ids))
  return { log, sends, taken, rejected, deliver }
}

const bad =
  (...ids: string[]) =>
  (type: string) =>
  (id: string) =>
    ids.includes(id) ? type : undefined

describe('RefusalSearch', () => {
  it('sends all at once while nothing is refused', async () => {
    const { sends, taken, deliver } = broker(() => undefined)
    await deliver('a1 b1 a2')
    expect(sends).toEqual(['a1 b1 a2'])
    expect(taken).toEqual(['a1', 'b1', 'a2'])
  })

  it.each(['MESSAGE_TOO_LARGE', 'INVALID_RECORD', 'INVALID_TIMESTAMP', 'CORRUPT_MESSAGE', 'UNKNOWN'])(
    'finds the records refused by %s and delivers the others in order',
    async (type) => {
      const { log, rejected, deliver } = broker(bad('a1', 'a4', 'b2')(type))
      await deliver('a1 b1 a2 c1 b2 a3 a4 b3 a5')
      expect(rejected.sort()).toEqual([`a1 ${type}`, `a4 ${type}`, `b2 ${type}`])
      expect(log.filter((id) => id.startsWith('a'))).toEqual(['a2', 'a3', 'a5'])
      expect(log.filter((id) => id.startsWith('b'))).toEqual(['b1', 'b3'])
      expect(log).toContain('c1')
    },
  )

  it('sends a refused partition whole before it sends parts of it', async () => {
    const { sends, deliver } = broker(bad('a1')('INVALID_RECORD'))
    await deliver('a1 b1 a2 b2')
    expect(sends).toEqual(['a1 b1 a2 b2', 'a1 a2', 'a1', 'a2', 'b1 b2'])
  })

  it('rejects none of a partition of which nothing is taken, and delivers the others', async () => {
    const { taken, rejected, deliver } = broker((id) =>
      id.startsWith('a') ? 'INVALID_TIMESTAMP' : undefined,
    )
    await expect(deliver('a1 b1 a2 b2')).rejects.toThrow(RecordsRefusedError)
    expect(taken).toEqual(['b1', 'b2'])
    expect(rejected).toEqual([])
  })

  it('tries no more records of it than it was told', async () => {
    const { sends, rejected, deliver } = broker(() => 'INVALID_TIMESTAMP')
    await expect(deliver('a1 a2 a3 a4 a5 a6 a7 a8', 2)).rejects.toThrow('INVALID_TIMESTAMP')
    expect(sends).toEqual(['a1 a2 a3 a4 a5 a6 a7 a8', 'a1 a2 a3 a4', 'a1 a2', 'a1', 'a2'])
    expect(rejected).toEqual([])
  })

  it('R31: condemns no record under a clock that is set meanwhile', async () => {
    let aheadMs = 7_200_000
    const now = Date.now
    vi.spyOn(Date, 'now').mockImplementation(() => now() + aheadMs)
    const { sends, log, rejected, deliver } = broker((id) => {
      if (aheadMs === 0) return undefined
      // Right after the first record was refused alone, and before the next is tried.
      if (sends.at(-1) === id) aheadMs = 0
      return 'INVALID_TIMESTAMP'
    })
    await expect(deliver('a1 a2 a3')).rejects.toThrow('INVALID_TIMESTAMP')
    await deliver('a1 a2 a3')
    expect(rejected).toEqual([])
    expect(log).toEqual(['a1', 'a2', 'a3'])
  })

  it('passes on what is no refusal, and keeps what is settled', async () => {
    const { taken, rejected, deliver } = broker(bad('b1')('REQUEST_TIMED_OUT'))
    await expect(deliver('b1 a1')).rejects.toThrow('REQUEST_TIMED_OUT')
    expect([taken, rejected]).toEqual([[], []])
  })

  it('sends what was taken of a refused batch not again, where the far side says so', async () => {
    const sends: string[] = []
    const taken: string[] = []
    const link: RecordLink = {
      partitionOf: ({ cameraId }) => cameraId,
      close: () => undefined,
      send: async (given, _, tell) => {
        sends.push(given.map(({ id }) => id).join(' '))
        tell?.(given.filter(({ cameraId }) => cameraId === 'a'))
        const refused = given.filter(({ cameraId }) => cameraId === 'b')
        if (refused.some(({ id }) => id === 'b2'))
          throw Object.assign(new Error('no'), { type: 'INVALID_RECORD' })
      },
    }
    const search = new RefusalSearch(link, 1_000, 4, kafkaFailure, {
      taken: (some) => taken.push(...some.map(({ id }) => id)),
      rejected: async ({ id }) => void taken.push(`not ${id}`),
    })
    await search.deliver(records('a1 b1 a2 b2 b3'))
    expect(sends).toEqual(['a1 b1 a2 b2 b3', 'b1 b2', 'b1', 'b2', 'b3'])
    expect(taken).toEqual(['a1', 'a2', 'b1', 'not b2', 'b3'])
  })

  it('splits in ways that settle each record once, whatever is refused', async () => {
    for (let round = 0; round < 300; round += 1) {
      const cameras = 1 + (round % 4)
      const count = 1 + ((round * 7) % 23)
      const ids = Array.from({ length: count }, (_, i) => `${'abcd'[i % cameras]}${i}`)
      const refused = new Set(ids.filter((_, i) => (round * 31 + i * i * 17) % 5 === 0))
      const { log, taken, rejected, deliver } = broker(
        (id) => (refused.has(id) ? 'INVALID_RECORD' : undefined),
        ({ cameraId }) => (cameraId < 'c' ? 'p0' : 'p1'),
      )
      await deliver(ids.join(' '))
      expect([...taken, ...rejected.map((line) => line.split(' ')[0])].sort()).toEqual([...ids].sort())
      for (const letter of 'abcd') {
        const delivered = log.filter((id) => id.startsWith(letter))
        expect(delivered).toEqual(ids.filter((id) => id.startsWith(letter) && !refused.has(id)))
      }
    }
  })
})
