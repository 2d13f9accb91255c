import { expect, it } from 'vitest'
import { StoredCoverage } from '../../src/coverage/stored-coverage.js'
import type { CoverageSpan } from '../../src/vision/coverage.js'
import { startStore } from '../store/store-fixture.js'
import { until } from '../support/until.js'

const span = (cameraId: string, fromMs: number, toMs: number, cause: CoverageSpan['cause'] = null) => ({
  ...{ cameraId, fromMs, toMs, cause },
})
const now = Date.now()
const all = { fromMs: 0, toMs: Infinity }

it('R129: the time of cameras outlasts the process, and this run goes on behind it', async () => {
  const first = await startStore()
  const one = new StoredCoverage(first.store)
  one.replace([span('dock', now, now + 10), span('dock', now + 10, now + 20, 'dark')])
  one.replace([span('dock', now + 10, now + 30.5, 'dark'), span('dock', now + 30.5, now + 40)])
  one.replace([span('gate', now, now + 5)])
  expect((await one.range(all, 10)).map(({ toMs }) => toMs - now)).toEqual([10, 30.5, 40, 5])
  await first.store.stop()

  const second = await startStore(first.folder)
  const other = new StoredCoverage(second.store)
  expect(await other.lastEnds()).toEqual(
    new Map([
      ['dock', now + 40],
      ['gate', now + 5],
    ]),
  )
  other.replace([span('dock', now + 40, now + 60, 'service_down')])
  const found = await other.range({ cameraId: 'dock', ...all }, 10)
  expect(found.map(({ fromMs, cause }) => [fromMs - now, cause])).toEqual([
    [0, null],
    [10, 'dark'],
    [30.5, null],
    [40, 'service_down'],
  ])
  expect(await other.range(all, 2)).toHaveLength(3)
  await until('it is written', async () => (await second.store.coverageEnds()).get('dock') === now + 60)
})
