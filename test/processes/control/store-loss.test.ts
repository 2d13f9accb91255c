import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { SinkHealth } from '../../../src/delivery/result-sink.js'
import { storeIdentity, StoreLoss } from '../../../src/processes/control/store-loss.js'
import type { Gap } from '../../../src/store/record.js'
import { silentLog } from '../../support/silent-log.js'
import { tempDir } from '../../support/temp-dir.js'
import { until } from '../../support/until.js'

const sink = (name: string, queued: number): SinkHealth => ({
  ...{ name, queued, state: 'up', reason: '', delivered: 0, dropped: 0, filtered: 0, rejected: {} },
})

describe('a store that is gone', () => {
  const open: StoreLoss[] = []
  afterEach(() => Promise.all(open.splice(0).map((loss) => loss.stop())))

  /** Starts over a note that the brokers have; resolves once it has left one of its own. */
  async function over(left: string | undefined, { shared = false, queued = 0 } = {}) {
    const written: string[] = []
    const told: Gap[] = []
    const loss = new StoreLoss({
      note: {
        read: () => Promise.resolve(left),
        write: (text) => Promise.resolve(void written.push(text)),
        stop: () => Promise.resolve(),
      },
      identity: { id: 'new', startedMs: 5_000 },
      sinks: () => [sink('kafka', queued)],
      isNameShared: () => Promise.resolve(shared),
      tell: (gap) => told.push(gap),
      log: silentLog(),
    })
    open.push(loss)
    loss.start()
    const note = await until('a note', () => written[0])
    return { told, note: JSON.parse(note) as { store: string; sinks: Record<string, object> } }
  }

  const noteOf = (store: string, queued: number) =>
    JSON.stringify({
      store,
      sinks: { kafka: { deliveredMs: 1_000, queued }, gone: { deliveredMs: 1, queued: 1 } },
    })

  it('R179: is told to sinks that there are, from when they last had everything', async () => {
    const { told } = await over(noteOf('old', 7))
    expect(told).toEqual([
      { sink: 'kafka', cameraId: '*', reason: 'store_lost', dropped: 7, fromMs: 1_000, toMs: 5_000 },
    ])
    expect((await over(noteOf('old', 0))).told[0]?.dropped).toBe(1)
  })

  it.each([
    ['nothing was left', undefined, false],
    ['it is the same', noteOf('new', 7), false],
    ['another node bears the name', noteOf('old', 7), true],
    ['somebody else wrote there', 'x', false],
  ])('is not told where %s', async (_, left, shared) => {
    expect((await over(left, { shared })).told).toEqual([])
  })

  it('keeps the time at which a sink last had everything over a start, while records wait', async () => {
    const { note } = await over(noteOf('new', 7), { queued: 9 })
    expect(note).toMatchObject({ store: 'new', sinks: { kafka: { deliveredMs: 1_000, queued: 9 } } })
  })

  it('has one name as long as its file is there', async () => {
    const folder = join(tempDir(), 'data')
    const first = await storeIdentity(folder)
    writeFileSync(join(folder, 'records.sqlite'), '')
    expect((await storeIdentity(folder))?.id).toBe(first?.id)
    rmSync(join(folder, 'records.sqlite'))
    expect((await storeIdentity(folder))?.id).not.toBe(first?.id)
    expect(await storeIdentity('/dev/null/data')).toBeUndefined()
  })
})
