import { describe, expect, it } from 'vitest'
import { defaultDelivery, Delivery } from '../../src/delivery/delivery.js'
import { kafkaFailure, KafkaUnavailableError } from '../../src/delivery/kafka/kafka-errors.js'
import type { RecordLink, RecordLinks } from '../../src/delivery/record-link.js'
import type { QueuedRecord } from '../../src/delivery/record-queue.js'
import { nowMs } from '../../src/lifecycle/clock.js'
import { unstoredQueue } from '../support/unstored-queue.js'
import { until } from '../support/until.js'

type Answer = 'ok' | 'lost' | 'too_large' | 'silent' | 'bad_time'

/** A far side that answers each send as told, then always ok. */
function farSide(answers: Answer[]) {
  const sends: { link: number; ids: string[]; deadlineMs: number }[] = []
  let links = 0
  const open = async (): Promise<RecordLink> => {
    const link = (links += 1)
    let cut: (() => void) | undefined
    return {
      send: async (records, deadlineMs) => {
        sends.push({ link, ids: records.map(({ id }) => id), deadlineMs })
        const answer = answers.shift() ?? 'ok'
        if (answer === 'ok') return
        if (answer === 'silent')
          await new Promise<void>((_, reject) => (cut = () => reject(new Error('cut'))))
        if (answer === 'too_large') throw Object.assign(new Error('too large'), { type: 'MESSAGE_TOO_LARGE' })
        if (answer === 'bad_time') throw Object.assign(new Error('bad time'), { type: 'INVALID_TIMESTAMP' })
        throw new KafkaUnavailableError('no acknowledgement')
      },
      partitionOf: ({ cameraId }) => cameraId,
      close: () => cut?.(),
    }
  }
  return { sends, open, links: () => links }
}

function delivery(open: RecordLinks['open'], overrides = {}) {
  const queue = unstoredQueue({ maxRecords: 1_000, maxBytes: 1e6 })
  const delivered: string[] = []
  const rejected: string[] = []
  const downs: number[] = []
  const reasons: string[] = []
  const settings = {
    ...defaultDelivery,
    lingerMs: 0,
    maxBatchRecords: 4,
    backoff: { baseMs: 1, capMs: 2 },
    ...overrides,
  }
  const subject = new Delivery(queue, { open, failureOf: kafkaFailure }, settings, {
    up: () => undefined,
    down: (reason, attempt) => {
      downs.push(attempt)
      reasons.push(reason)
    },
    delivered: (records) => delivered.push(...records.map(({ id }) => id)),
    rejected: ({ id }) => rejected.push(id),
  })
  const pushOf = (cameraId: string, ...ids: number[]) => {
    for (const id of ids) {
      queue.push({ ...record(id), cameraId })
      subject.notify()
    }
  }
  const push = (...ids: number[]) => pushOf('dock-1', ...ids)
  return { subject, queue, push, pushOf, delivered, rejected, downs, reasons }
}

const record = (id: number): QueuedRecord => ({
  id: String(id),
  type: 'gantry.detections.v1',
  cameraId: 'dock-1',
  time: '2026-11-20T08:15:30.120Z',
  value: Buffer.from('{}'),
  position: id,
  isStored: false,
  acceptedMs: nowMs(),
})

describe('Delivery', () => {
  it('sends a failed batch again unchanged, over a new link, before anything newer', async () => {
    const { sends, open } = farSide(['lost', 'lost'])
    const { subject, push, delivered, downs } = delivery(open)
    push(1, 2, 3)
    subject.start()
    await until('two failures', () => downs.length === 2)
    push(4, 5)
    await until('all delivered', () => delivered.length === 5)
    expect(sends.map(({ link, ids }) => [link, ids])).toEqual([
      [1, ['1', '2', '3']],
      [2, ['1', '2', '3']],
      [3, ['1', '2', '3']],
      [3, ['4', '5']],
    ])
    expect(downs).toEqual([1, 2])
    await subject.stop(100)
  })

  it('gives a slow far side more time after each miss, and the usual after a success', async () => {
    const { sends, open } = farSide(['lost', 'lost', 'lost', 'ok'])
    const { subject, push, delivered } = delivery(open, { sendDeadlineMs: 6_000, maxSendDeadlineMs: 20_000 })
    push(1)
    subject.start()
    await until('delivered', () => delivered.length === 1)
    push(2)
    await until('delivered', () => delivered.length === 2)
    expect(sends.map(({ deadlineMs }) => deadlineMs)).toEqual([6_000, 12_000, 20_000, 20_000, 6_000])
    await subject.stop(100)
  })

  it('halves a batch that is too large until the one record that has no future is alone', async () => {
    const { sends, open } = farSide(['too_large', 'too_large', 'too_large'])
    const { subject, push, delivered, rejected } = delivery(open)
    push(1, 2, 3, 4)
    subject.start()
    await until('all settled', () => delivered.length === 3)
    expect(sends.map(({ ids }) => ids)).toEqual([['1', '2', '3', '4'], ['1', '2'], ['1'], ['2'], ['3', '4']])
    expect(rejected).toEqual(['1'])
    await subject.stop(100)
  })

  it('keeps what is refused like everything of its partition, delivers others, and tells why', async () => {
    const { sends, open } = farSide(['bad_time', 'bad_time', 'bad_time', 'bad_time'])
    const { subject, push, pushOf, delivered, rejected, reasons } = delivery(open)
    push(1, 2)
    pushOf('gate', 3, 4, 5, 6)
    subject.start()
    await until('all delivered', () => delivered.length === 6)
    expect(sends.map(({ link, ids }) => `${link}: ${ids.join(' ')}`)).toEqual([
      '1: 1 2 3 4',
      '1: 1 2',
      '1: 1',
      '1: 2',
      '1: 3 4',
      '2: 1 2 5 6',
    ])
    expect(rejected).toEqual([])
    expect(reasons).toEqual([expect.stringContaining('clock') as string])
    await subject.stop(100)
  })

  it('says while a send waits that it is late, and what stands in its way', async () => {
    let answer: () => void = () => undefined
    const link: RecordLink = {
      send: () => new Promise((resolve) => (answer = resolve)),
      partitionOf: ({ cameraId }) => cameraId,
      trouble: () => 'connect ECONNREFUSED',
      close: () => undefined,
    }
    const { subject, push, delivered, downs, reasons } = delivery(async () => link, { lateAfterMs: 20 })
    push(1)
    subject.start()
    await until('it is told', () => reasons.length === 1)
    expect(reasons).toEqual(['no acknowledgement for 20 ms (connect ECONNREFUSED)'])
    answer()
    await until('delivered', () => delivered.length === 1)
    expect(downs).toEqual([1])
    await subject.stop(100)
  })

  it('R138: keeps what was taken of a failed batch, and fills it up behind the rest', async () => {
    const sends: string[] = []
    const open = async (): Promise<RecordLink> => ({
      send: async (records, _, taken) => {
        sends.push(records.map(({ id }) => id).join(' '))
        if (sends.length > 1) return
        taken?.(records.filter(({ cameraId }) => cameraId === 'gate'))
        throw new Error('the leader has gone')
      },
      partitionOf: ({ cameraId }) => cameraId,
      close: () => undefined,
    })
    const { subject, push, pushOf, delivered, downs } = delivery(open)
    push(1, 2)
    pushOf('gate', 3, 4, 5)
    push(6)
    subject.start()
    await until('all delivered', () => delivered.length === 6)
    expect(sends).toEqual(['1 2 3 4', '1 2 5 6'])
    expect(delivered).toEqual(['3', '4', '1', '2', '5', '6'])
    expect(downs).toEqual([1])
    await subject.stop(100)
  })

  it('R140: settles a refused record once it was set aside, and tries that again over a new link', async () => {
    const asides: string[] = []
    const open = async (): Promise<RecordLink> => ({
      send: async (records) => {
        if (records.some(({ id }) => id === '2'))
          throw Object.assign(new Error('too large'), { type: 'MESSAGE_TOO_LARGE' })
      },
      setAside: async ({ id }, { reason }) => {
        asides.push(`${id} ${reason}`)
        if (asides.length === 1) throw new Error('the leader has gone')
        return { place: 'aside' }
      },
      partitionOf: ({ cameraId }) => cameraId,
      close: () => undefined,
    })
    const { subject, push, delivered, rejected, downs } = delivery(open)
    push(1, 2, 3)
    subject.start()
    await until('all settled', () => delivered.length + rejected.length === 3)
    expect(asides).toEqual(['2 MESSAGE_TOO_LARGE', '2 MESSAGE_TOO_LARGE'])
    expect(rejected).toEqual(['2'])
    expect(delivered).toEqual(['1', '3'])
    expect(downs).toEqual([1])
    await subject.stop(100)
  })

  it('waits for company up to the linger, and no longer', async () => {
    const { sends, open } = farSide([])
    const { subject, push, delivered } = delivery(open, { lingerMs: 40 })
    subject.start()
    push(1, 2)
    await until('delivered', () => delivered.length === 2)
    push(3, 4, 5, 6, 7)
    await until('delivered', () => delivered.length === 7)
    expect(sends.map(({ ids }) => ids.length)).toEqual([2, 4, 1])
    await subject.stop(100)
  })

  it('delivers what is queued before it stops', async () => {
    const { open } = farSide([])
    const { subject, push, delivered } = delivery(open, { lingerMs: 60_000, maxBatchRecords: 100 })
    subject.start()
    push(1, 2, 3)
    await subject.stop(5_000)
    expect(delivered).toEqual(['1', '2', '3'])
  })

  it('is cut off at the end of its time, and what it was sending is in the queue again', async () => {
    const { open } = farSide(['silent'])
    const { subject, queue, push, delivered } = delivery(open)
    push(1, 2, 3, 4, 5)
    subject.start()
    await until('sending', () => subject.inFlight === 4)
    await subject.stop(50)
    await subject.stop(50)
    expect(delivered).toEqual([])
    expect((await queue.lease(10, 1e6)).map(({ id }) => id)).toEqual(['1', '2', '3', '4', '5'])
  })

  it('tries on for its time when the far side is away, and ends with it', async () => {
    const { subject, queue, push, downs } = delivery(() => Promise.reject(new Error('refused')))
    push(1)
    subject.start()
    const startMs = performance.now()
    await subject.stop(200)
    expect(performance.now() - startMs).toBeGreaterThan(190)
    expect(performance.now() - startMs).toBeLessThan(2_000)
    expect(downs.length).toBeGreaterThan(2)
    expect(queue.length).toBe(1)
  })

  it('delivers what it has when the far side comes back while it stops', async () => {
    const { open } = farSide([])
    let tries = 0
    const { subject, push, delivered } = delivery(() =>
      ++tries < 6 ? Promise.reject(new Error('refused')) : open(),
    )
    push(1, 2)
    subject.start()
    await until('some tries', () => tries > 1)
    await subject.stop(20_000)
    expect(delivered).toEqual(['1', '2'])
  })

  it('does not wait for a far side that says nothing when there is nothing to deliver', async () => {
    const { subject } = delivery(
      (signal) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('cut')))),
    )
    subject.start()
    const startMs = performance.now()
    await subject.stop(20_000)
    expect(performance.now() - startMs).toBeLessThan(2_000)
  })

  it('stops without ever having started', async () => {
    await delivery(farSide([]).open).subject.stop(10)
  })
})
