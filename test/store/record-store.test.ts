import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { streamPosition, type Gap } from '../../src/store/record.js'
import { StoreFile } from '../../src/store/store-file.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'
import { eventOf, resultOf, startStore } from './store-fixture.js'

const all = { records: 10_000, bytes: 1e9 }

describe('RecordStore', () => {
  it('publishes a record once it is in the file, in the order of acceptance', async () => {
    const { accept, published, store, path } = await startStore()
    await Promise.all(Array.from({ length: 500 }, (_, seq) => accept(resultOf(seq + 1))))
    expect(published.map(({ record }) => record.seq)).toEqual(Array.from({ length: 500 }, (_, i) => i + 1))
    expect(published.every(({ isStored }) => isStored)).toBe(true)
    const other = new DatabaseSync(path, { readOnly: true })
    expect(other.prepare('SELECT count(*) AS n FROM records').get()).toEqual({ n: 500 })
    other.close()
    const forKafka = await store.forSink('kafka', 0, Infinity, all)
    expect(forKafka.map(({ id }) => id)).toEqual(published.map(({ record }) => record.id))
  })

  it('R108: knows after a restart what no sink has delivered, and goes on counting', async () => {
    const first = await startStore()
    await Promise.all([1, 2, 3, 4].map((seq) => first.accept(resultOf(seq))))
    first.store.settle('kafka', first.published[1]?.record.position ?? 0)
    await first.store.stop()
    const second = await startStore(first.folder)
    const left = await second.store.forSink('kafka', first.published[1]?.record.position ?? 0, Infinity, all)
    expect(left.map(({ seq }) => seq)).toEqual([3, 4])
    await second.accept(resultOf(5))
    expect(second.published[0]?.record.position).toBe(5 * 1_024)
  })

  it('a new sink begins at its start, one that is gone is forgotten', async () => {
    const first = await startStore()
    await first.accept(resultOf(1))
    await first.store.stop()
    const file = StoreFile.openToWrite(first.path)
    expect(file.useSinks(['kafka', 'mqtt'], file.newest)).toEqual([
      { sink: 'kafka', settled: 0, pending: 1 },
      { sink: 'mqtt', settled: 1_024, pending: 0 },
    ])
    expect(file.useSinks(['mqtt'], file.newest)).toEqual([{ sink: 'mqtt', settled: 1_024, pending: 0 }])
    file.close()
  })

  it('R109: lets the oldest results go beyond its bytes, keeps events, and tells each sink what it misses', async () => {
    const { store, accept, path } = await startStore(undefined, {
      maxBytes: 1024 ** 2,
      sinks: ['kafka', 'mqtt'],
    })
    const gaps: Gap[] = []
    store.onGap = (gap) => gaps.push(gap)
    await accept(eventOf(1))
    store.settle('mqtt', 1e12)
    for (let seq = 1; seq <= 3_000; seq += 1) void accept(resultOf(seq, seq % 2 ? 'dock-1' : 'gate', 1_000))
    await until('the bound is kept', () => gaps.length >= 2 && store.health.bytes < 1024 ** 2, 30_000)
    const file = StoreFile.openToRead(path)
    const { usedBytes } = file?.figures() ?? { usedBytes: Infinity }
    const kept = file?.forSink('kafka', 0, Infinity, all) ?? []
    file?.close()
    expect(usedBytes).toBeLessThanOrEqual(1024 ** 2 + 4_096)
    expect(kept.filter(({ type }) => type === 'gantry.events.v1')).toHaveLength(1)
    expect(new Set(gaps.map(({ sink }) => sink))).toEqual(new Set(['kafka']))
    const dropped = StoreFile.openToRead(path)
      ?.gaps.all()
      .reduce((sum, gap) => sum + gap.dropped, 0)
    expect(dropped).toBe(3_000 - (kept.length - 1))
  })

  it('R110: a disk that takes nothing holds nobody up: records are published, and stored once there is room', async () => {
    const folder = tempDir()
    // Where a folder is expected there is a file.
    rmSync(folder, { recursive: true })
    writeFileSync(folder, '')
    const { store, accept, published, lines } = await startStore(folder)
    await accept(resultOf(1))
    expect(published[0]?.isStored).toBe(false)
    expect(store.health).toMatchObject({ state: 'degraded' })
    expect(JSON.stringify(lines).includes('without being stored')).toBe(true)
    rmSync(folder)
    await until('it is stored', () => store.health.state === 'up')
    await accept(resultOf(2))
    expect(published[1]?.isStored).toBe(true)
    const stored = await store.forSink('kafka', 0, Infinity, all)
    expect(stored.map(({ seq }) => seq)).toEqual([1, 2])
  })

  it('R111: a damaged file is moved aside with a word in the log, and the service goes on', async () => {
    const folder = tempDir()
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'records.sqlite'), 'this is no database'.repeat(500))
    const { store, accept, published, lines } = await startStore(folder)
    await accept(resultOf(1))
    expect(published[0]?.isStored).toBe(true)
    expect(store.health.state).toBe('up')
    expect(readdirSync(folder).some((name) => name.startsWith('records.sqlite.damaged-'))).toBe(true)
    expect(lines.filter((line) => JSON.stringify(line).includes('was damaged'))).toHaveLength(1)
  })

  it('R112: two services do not write one file: the second says so, and goes on without storing', async () => {
    const first = await startStore()
    const second = await startStore(first.folder)
    await second.accept(resultOf(1))
    expect(second.published[0]?.isStored).toBe(false)
    expect(second.store.health.reason).toContain('written by another service')
    await first.store.stop()
    await until('it has the file', () => second.store.health.state === 'up')
  })

  it('a file of form 1 goes on: what it holds is delivered, told and kept from now on', async () => {
    const folder = tempDir()
    const path = join(folder, 'records.sqlite')
    const old = new DatabaseSync(path)
    old.exec(readFileSync(join(import.meta.dirname, 'form-1.sql'), 'utf8'))
    old.close()
    const gaps: Gap[] = []
    const { store, accept, published, places } = await startStore(folder, {}, (gap) => gaps.push(gap))
    expect(store.health.state).toBe('up')
    expect(places()).toEqual([{ sink: 'kafka', settled: 1_024, pending: 2 }])
    expect((await store.forSink('kafka', 1_024, Infinity, all)).map(({ id }) => id)).toEqual([
      'gate/e/2',
      'gate/e/event',
    ])
    await until('the gap', () => gaps.length > 0)
    expect(gaps).toEqual([
      { sink: 'kafka', cameraId: 'gate', reason: 'retention', dropped: 3, fromMs: 5, toMs: 9 },
    ])
    expect(await store.coverage('gate', 0, 1e6, 10)).toHaveLength(1)
    await accept(resultOf(7))
    expect(published[0]).toMatchObject({ isStored: true, record: { position: 3 * 1_024 } })
  })

  it('a file of a later version is left as it is', async () => {
    const first = await startStore()
    await first.store.stop()
    const db = new DatabaseSync(first.path)
    db.exec('PRAGMA user_version = 99')
    db.close()
    const second = await startStore(first.folder)
    expect(second.store.health).toMatchObject({
      state: 'degraded',
      reason: expect.stringContaining('a later version of Gantry') as string,
    })
    expect(existsSync(first.path)).toBe(true)
  })

  it('keeps results in memory alone where that is wanted, and events all the same', async () => {
    const { accept, published, store } = await startStore(undefined, { detections: 'memory' })
    await Promise.all([accept(resultOf(1)), accept(eventOf(1)), accept(resultOf(2))])
    expect(published.map(({ isStored }) => isStored)).toEqual([false, true, false])
    expect((await store.forSink('kafka', 0, Infinity, all)).map(({ type }) => type)).toEqual([
      'gantry.events.v1',
    ])
  })

  it('counts results without holes for the stream, whatever events come between, over restarts too', async () => {
    const first = await startStore()
    for (const record of [resultOf(1), eventOf(1), eventOf(2), resultOf(2), eventOf(3)])
      await first.accept(record)
    await first.store.stop()
    const second = await startStore(first.folder)
    for (const record of [eventOf(4), resultOf(3)]) await second.accept(record)
    const placed = [...first.published, ...second.published].map(({ record }) => record)
    const results = placed.filter(({ type }) => type === 'gantry.detections.v1')
    expect(results.map(({ position }) => streamPosition(position))).toEqual([1, 2, 3])
    expect(placed.map(({ position }) => position)).toEqual(
      placed.map(({ position }) => position).sort((a, b) => a - b),
    )
    const past = StoreFile.openToRead(first.path)
    expect(past?.stream(1, 9, 10).map(({ position }) => position)).toEqual([2, 3])
    expect(past?.placeOf(first.epoch, 7)).toBe(2)
    expect(past?.placeOf(second.epoch, 3)).toBe(3)
    expect(past?.placeOf('none', 3)).toBeUndefined()
    const times = results.map(({ timeMs }) => timeMs)
    expect([0, ...times, Date.now()].map((timeMs) => past?.placeAt(timeMs))).toEqual([0, 0, 1, 2, undefined])
    past?.close()
  })

  it('answers for results of the past, newest first, page by page, of one camera or all, with a label', async () => {
    const { accept, store } = await startStore()
    for (let seq = 1; seq <= 30; seq += 1) await accept(resultOf(seq, seq % 2 ? 'dock-1' : 'gate'))
    const range = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER, limit: 4 }
    const page = await store.range(range)
    expect(page.map(({ seq }) => seq)).toEqual([30, 29, 28, 27])
    const { timeMs = 0, cameraId = '', seq = 0 } = page.at(-1) ?? {}
    const next = await store.range({ ...range, before: { timeMs, cameraId, seq } })
    expect(next.map((record) => record.seq)).toEqual([26, 25, 24, 23])
    expect((await store.range({ ...range, cameraId: 'gate' })).map((record) => record.seq)).toEqual([
      30, 28, 26, 24,
    ])
    expect((await store.range({ ...range, contains: '"label":"l0"' })).map((r) => r.seq)).toEqual([
      30, 27, 24, 21,
    ])
    await store.forget('gate')
    expect((await store.range(range)).map((record) => record.seq)).toEqual([29, 27, 25, 23])
    expect((await store.forSink('kafka', 0, Infinity, all)).length).toBe(30)
  })
})
