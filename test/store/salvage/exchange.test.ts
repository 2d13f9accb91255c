import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import type { Gap } from '../../../src/store/record.js'
import { logDamage } from '../../../src/store/salvage/exchange.js'
import { pageBytes } from '../../../src/store/schema.js'
import { tempDir } from '../../support/temp-dir.js'
import { until } from '../../support/until.js'
import { eventOf, resultOf, startStore } from '../store-fixture.js'

const all = { records: 100_000, bytes: 1e9 }
const sinks = ['kafka', 'mqtt']
const results = 1_200
const cameras = ['dock-1', 'gate', 'yard']

/** Overwrites bytes of a file with such as are nothing. */
function damage(path: string, at: number, length: number, by: 'noise' | 'zeros' = 'noise'): void {
  const bytes = Buffer.from(
    Array.from({ length }, (_, index) => (by === 'zeros' ? 0 : (index * 197 + 91) & 0xff)),
  )
  const file = openSync(path, 'r+')
  writeSync(file, bytes, 0, length, at)
  closeSync(file)
}

function page(number: number): number {
  return (number - 1) * pageBytes
}

function rootOf(path: string, name: string): number {
  using db = new DatabaseSync(path, { readOnly: true })
  return Number(db.prepare('SELECT rootpage FROM sqlite_schema WHERE name = ?').get(name)?.['rootpage'])
}

/** A folder whose store was ended in good order, with results and an event; kafka has taken the first half, mqtt nothing. */
async function storedFolder(): Promise<{
  folder: string
  path: string
  ids: readonly string[]
  settled: number
}> {
  const { folder, path, store, accept, published } = await startStore(undefined, { sinks })
  await Promise.all([
    accept(eventOf(1)),
    ...Array.from({ length: results }, (_, seq) => accept(resultOf(seq + 1, cameras[seq % 3], 700))),
    accept(eventOf(2)),
  ])
  const settled = published[results / 2]?.record.position ?? 0
  store.settle('kafka', settled)
  await store.forget('yard')
  store.writeCoverage([{ cameraId: 'gate', fromMs: 5_000, toMs: 65_000, cause: null }])
  await store.stop()
  return { folder, path, ids: published.map(({ record }) => record.id), settled }
}

/** The same, as a process leaves it that is killed: everything is in the log yet. */
async function killedFolder() {
  const running = await startStore(undefined, { sinks })
  await Promise.all(
    Array.from({ length: 300 }, (_, seq) => running.accept(resultOf(seq + 1, cameras[seq % 3], 700))),
  )
  const folder = tempDir()
  for (const end of ['', '-wal']) copyFileSync(running.path + end, join(folder, `records.sqlite${end}`))
  return {
    folder,
    path: join(folder, 'records.sqlite'),
    ids: running.published.map(({ record }) => record.id),
  }
}

/** Starts a store on a folder, and says what sinks get of it. */
async function startAgain(folder: string) {
  const gaps: Gap[] = []
  const again = await startStore(folder, { sinks }, (gap) => gaps.push(gap))
  const kafkaAt = again.places().find(({ sink }) => sink === 'kafka')?.settled ?? Number.NaN
  // As who delivers does: what cannot be read now is asked for again.
  const readAll = (sink: string, after: number) =>
    until(`all for ${sink}`, () => again.store.forSink(sink, after, Infinity, all), 30_000)
  const forKafka = await readAll('kafka', kafkaAt)
  const forMqtt = await readAll('mqtt', 0)
  const lost = (sink: string) =>
    gaps.filter((gap) => gap.sink === sink).reduce((sum, { dropped }) => sum + dropped, 0)
  const words = () => again.lines.filter((line) => JSON.stringify(line).includes('was damaged'))
  return { ...again, gaps, kafkaAt, forKafka, forMqtt, lost, words, readAll }
}

describe('a damaged file of the store', () => {
  it.each([
    ['its first page is noise', (path: string) => damage(path, 0, pageBytes)],
    ['its first pages are zeros', (path: string) => damage(path, 0, 100, 'zeros')],
    [
      'the root of the records is noise',
      (path: string) => damage(path, page(rootOf(path, 'records')), pageBytes),
    ],
    [
      'the root of the index is noise',
      (path: string) => damage(path, page(rootOf(path, 'results')), pageBytes),
    ],
  ])('R147: loses nothing where %s, and places of sinks go over', async (_, ruin) => {
    const { folder, path, ids, settled } = await storedFolder()
    ruin(path)
    const again = await startAgain(folder)
    expect(again.store.health.state).toBe('up')
    expect(again.kafkaAt).toBe(settled)
    expect(again.forMqtt.map(({ id }) => id)).toEqual(ids)
    expect(again.forKafka.map(({ id }) => id)).toEqual(ids.slice(results / 2 + 1))
    expect(again.gaps).toEqual([])
    await again.accept(resultOf(9_999))
    expect(again.words()).toHaveLength(1)
    expect(again.published[0]?.isStored).toBe(true)
    expect((await again.readAll('mqtt', 0)).map(({ id }) => id)).toEqual([...ids, 'dock-1/e/9999'])
    expect(again.published[0]?.record.position).toBeGreaterThan(again.forMqtt.at(-1)?.position ?? Infinity)
    // What was asked to be forgotten still is, and the time of cameras is known.
    const range = await again.store.range({ fromMs: 0, toMs: 1e15, limit: 5_000, cameraId: 'yard' })
    expect(range).toEqual([])
    expect(await again.store.coverage('gate', 0, 1e6, 10)).toHaveLength(1)
  })

  it.each([
    ['a page in its middle is noise', (path: string) => damage(path, page(500), pageBytes)],
    ['pages in its middle are zeros', (path: string) => damage(path, page(600), 20 * pageBytes, 'zeros')],
    [
      'bytes here and there are others',
      (path: string) => [300, 520, 700, 900].forEach((at) => damage(path, page(at) + 300, 40)),
    ],
    ['its end is cut off', (path: string) => truncateSync(path, page(700) + 100)],
    [
      'the place of sinks and a page of records are noise',
      (path: string) => {
        damage(path, page(rootOf(path, 'sinks')), pageBytes)
        damage(path, page(500), pageBytes)
      },
    ],
  ])('R148: salvages what can be read where %s, and tells each sink what it misses', async (_, ruin) => {
    const { folder, path, ids } = await storedFolder()
    const asideBefore = readFileSync(path).length
    ruin(path)
    const again = await startAgain(folder)
    // A page is looked at when it is read: by a sink, or by who asks for the past.
    await until('it is known', async () => {
      await again.store
        .range({ fromMs: 0, toMs: 1e15, limit: 10_000, contains: 'nowhere' })
        .catch(() => undefined)
      return again.words().length > 0
    })
    await until('it is up', () => again.store.health.state === 'up')
    const kept = (await again.readAll('mqtt', 0)).map(({ id }) => id)
    expect(kept.length).toBeGreaterThan(ids.length / 3)
    expect(ids).toEqual(expect.arrayContaining(kept))
    expect(kept).toEqual(ids.filter((id) => kept.includes(id)))
    const missing = ids.length - kept.length
    await until('it is told', () => missing === 0 || again.lost('mqtt') > 0)
    // An event that is lost is not known to have been there; what came behind all that is left is not, either.
    const last = ids.indexOf(kept.at(-1) ?? '')
    const known = ids.slice(0, last).filter((id) => !kept.includes(id) && !id.includes('event')).length
    expect(again.lost('mqtt')).toBeGreaterThanOrEqual(known)
    expect(again.lost('mqtt')).toBeLessThanOrEqual(missing)
    expect(again.gaps.every(({ reason }) => reason === 'damaged')).toBe(true)
    const aside = readdirSync(folder).find((name) => /^records\.sqlite\.damaged-[^.]*Z$/.test(name)) ?? ''
    expect(readFileSync(join(folder, aside)).length).toBeLessThanOrEqual(asideBefore)
    await again.accept(resultOf(9_999))
    expect(again.published[0]?.isStored).toBe(true)
  })

  it.each([
    [
      'a frame in the middle of its log is noise',
      (path: string) => damage(`${path}-wal`, 32 + 300 * (24 + pageBytes), 500),
    ],
    ['the header of its log is noise', (path: string) => damage(`${path}-wal`, 0, 32)],
    ['it is empty beside its log', (path: string) => truncateSync(path, 0)],
    ['it is gone beside its log', (path: string) => renameSync(path, `${path}.elsewhere`)],
  ])('R149: brings over what SQLite would pass over without a word where %s', async (_, ruin) => {
    const { folder, path, ids } = await killedFolder()
    expect(logDamage(path)).toBeUndefined()
    ruin(path)
    expect(logDamage(path)).toBeDefined()
    const again = await startAgain(folder)
    expect(again.words()).toHaveLength(1)
    const kept = again.forMqtt.map(({ id }) => id)
    expect(kept.length).toBeGreaterThanOrEqual(ids.length - 3)
    expect(again.lost('mqtt')).toBe(ids.length - kept.length)
  })

  it('R149: what a killed process leaves is no damage', async () => {
    const { folder, path, ids } = await killedFolder()
    // The last commit was being written.
    const bytes = readFileSync(`${path}-wal`)
    writeFileSync(`${path}-wal`, bytes.subarray(0, bytes.length - pageBytes - 700))
    expect(logDamage(path)).toBeUndefined()
    const again = await startAgain(folder)
    expect(again.words()).toEqual([])
    expect(ids.length - again.forMqtt.length).toBeLessThan(300)
  })

  it('R147: a file damaged under a service that runs is salvaged, and what waits in memory is stored in the new one', async () => {
    const gaps: Gap[] = []
    const { path, folder, store, accept, lines, published } = await startStore(undefined, { sinks }, (gap) =>
      gaps.push(gap),
    )
    await Promise.all(Array.from({ length: 9_000 }, (_, seq) => accept(resultOf(seq + 1, 'dock-1', 700))))
    store.settle('kafka', published[99]?.record.position ?? 0)
    await until('the log is in the file', () => readFileSync(path).length > 4 * 1024 ** 2)
    damage(path, page(3_000), 40 * pageBytes)
    // Until the log begins anew, pages are read from there.
    const isSeen = async () => {
      await store.forSink('mqtt', 0, Infinity, all).catch(() => undefined)
      return lines.some((line) => JSON.stringify(line).includes('was damaged'))
    }
    await until('it is seen', isSeen, 60_000, 250)
    await accept(resultOf(10_000))
    expect(published.at(-1)?.isStored).toBe(true)
    const kept = await store.forSink('mqtt', 0, Infinity, all)
    await until('the gap is told', () => gaps.some(({ sink }) => sink === 'mqtt'))
    const lost = gaps.filter(({ sink }) => sink === 'mqtt').reduce((sum, { dropped }) => sum + dropped, 0)
    expect(kept.length + lost).toBe(9_001)
    expect(lost).toBeLessThan(100)
    expect(readdirSync(folder).filter((name) => name.includes('salvag'))).toEqual([])
    await store.stop()
    const again = await startAgain(folder)
    expect(again.kafkaAt).toBe(published[99]?.record.position)
    expect(again.words()).toEqual([])
  }, 120_000)

  it('R147: a process that ends while it salvages loses nothing: the next one goes on', async () => {
    const { folder, path, ids } = await storedFolder()
    damage(path, 0, pageBytes)
    writeFileSync(`${path}.salvaging`, 'half of it')
    const again = await startAgain(folder)
    expect(again.forMqtt.map(({ id }) => id)).toEqual(ids)
    await again.store.stop()
    // It had put the damaged one away, and not yet the new one in its place.
    renameSync(path, `${path}.salvaged`)
    writeFileSync(`${path}-wal`, 'of the damaged one')
    const third = await startAgain(folder)
    expect(third.forMqtt.map(({ id }) => id)).toEqual(ids)
    expect(existsSync(`${path}.salvaged`)).toBe(false)
  })

  it('R147: a lock that is damaged is made anew', async () => {
    const { folder, path, ids } = await storedFolder()
    writeFileSync(`${path}.lock`, 'this is no database'.repeat(100))
    const again = await startAgain(folder)
    expect([again.forMqtt.length, again.words()]).toEqual([ids.length, []])
  })
})
