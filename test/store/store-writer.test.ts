import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { packBatch, type FromWriter, type StoreTrouble } from '../../src/store/store-messages.js'
import type { PlacedRecord } from '../../src/store/record.js'
import { StoreFile } from '../../src/store/store-file.js'
import { StoreWriter } from '../../src/store/store-writer.js'
import { tempDir } from '../support/temp-dir.js'
import { eventOf, resultOf } from './store-fixture.js'

const yearMs = 365 * 86_400_000

afterEach(() => {
  vi.useRealTimers()
})

function writer(path = join(tempDir(), 'records.sqlite')) {
  const told: FromWriter[] = []
  const start = { path, epoch: 'e', sinks: ['kafka'], maxBytes: 1024 ** 3, maxAgeMs: 7 * 86_400_000 }
  const inner = new StoreWriter(start, (message) => told.push(message))
  const open = () => inner.receive({ type: 'open', from: 0, settled: {} })
  open()
  return {
    path,
    told,
    open,
    commit: (records: readonly PlacedRecord[]) =>
      inner.receive({ type: 'commit', batch: packBatch(records), settled: {}, told: [], durable: false }),
    /** Until there is nothing to do any more. */
    tend: () => {
      while (inner.tend());
    },
    close: () => inner.close(),
  }
}

function positionsIn(path: string): readonly number[] {
  const file = StoreFile.openToRead(path)
  const found = file?.forSink('kafka', 0, Infinity, { records: 100, bytes: 1e9 }) ?? []
  file?.close()
  return found.map(({ position }) => position)
}

it.each([
  ['a year ahead', yearMs],
  ['at 1970', -56 * yearMs],
])('R145: a clock that is %s at the start, while it runs or for a while deletes nothing', (_, wrongByMs) => {
  vi.useFakeTimers({ toFake: ['Date'] })
  const trueMs = Date.now()
  const first = writer()
  first.commit([{ ...resultOf(1), position: 1_024 }])
  first.tend()
  vi.setSystemTime(trueMs + wrongByMs)
  first.tend()
  first.commit([
    { ...resultOf(2), timeMs: Date.now(), position: 2_048 },
    { ...eventOf(1), timeMs: Date.now(), position: 2_049 },
  ])
  first.tend()
  first.close()
  const second = writer(first.path)
  second.tend()
  vi.setSystemTime(trueMs)
  second.commit([{ ...resultOf(3), position: 3_072 }])
  second.tend()
  second.close()
  const third = writer(first.path)
  third.tend()
  third.close()
  expect(positionsIn(first.path)).toEqual([1_024, 2_048, 2_049, 3_072])
  expect([first, second, third].flatMap(({ told }) => told.filter(({ type }) => type === 'gaps'))).toEqual([])
})

it('goes on counting where all records are gone, so that none counts as delivered that is not', () => {
  const first = writer()
  first.commit([{ ...resultOf(1), position: 50 * 1_024 }])
  first.close()
  const file = StoreFile.openToWrite(first.path)
  file.commit([], { kafka: 50 * 1_024 }, [], false)
  file.dropUpTo(1e12, 100)
  file.close()
  const second = writer(first.path)
  expect(second.told[0]).toMatchObject({ type: 'opened', newest: 50 * 1_024 })
  second.close()
})

it('R147: where there is no room to salvage, the damaged file stays where it is, and is tried again a minute later', () => {
  vi.useFakeTimers({ toFake: ['hrtime'] })
  const first = writer()
  first.commit([{ ...resultOf(1), position: 1_024 }])
  first.close()
  const bytes = readFileSync(first.path)
  bytes.fill(0x5b, 0, 1_024)
  writeFileSync(first.path, bytes)
  // Nothing can be written where the new file is to be.
  mkdirSync(`${first.path}.salvaging`)
  const second = writer(first.path)
  expect(second.told).toEqual([
    { type: 'failed', trouble: expect.objectContaining({ kind: 'failed' }) as StoreTrouble },
  ])
  expect(readFileSync(first.path).equals(bytes)).toBe(true)
  rmSync(`${first.path}.salvaging`, { recursive: true })
  second.open()
  expect(second.told.at(-1)).toMatchObject({ type: 'failed' })
  vi.advanceTimersByTime(61_000)
  second.open()
  expect(second.told.find(({ type }) => type === 'opened')).toMatchObject({
    rescue: { report: { records: 1, lost: 0 } },
  })
  second.close()
  expect(positionsIn(first.path)).toEqual([1_024])
})
