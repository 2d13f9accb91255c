import { expect, it } from 'vitest'
import { soak } from './soak.js'

/** The short form; `npm run soak` is the long one. Memory needs minutes to settle and is judged there only. */
it('keeps its descriptors and accounts for every frame while it runs', async () => {
  const report = await soak(
    { cameras: 3, fps: 4, warmUpMs: 5_000, runMs: 15_000, everyMs: 1_000, models: ['ppe'] },
    () => undefined,
  )
  expect(report.processes.map(({ name }) => name)).toEqual(['control', 'engine', 'stream', 'model server'])
  for (const { name, fewestFds, mostFds } of report.processes)
    expect(mostFds - fewestFds, name).toBeLessThanOrEqual(8)
  expect(report.frames.inferred).toBeGreaterThan(20)
  expect(report.frames.received - report.frames.ended).toBeLessThanOrEqual(6)
  expect(report.restarts).toBe(0)
}, 180_000)
