import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import type { RecentPage } from '../../src/cache/result-cache.js'
import { rtspCameras } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

/** Takes nothing: every write fails with ENOSPC. */
const fullDisk = '/dev/full'

it.skipIf(!existsSync(fullDisk))(
  'R19: with a full disk under its log and its store it goes on, says so, recovers and ends in good order',
  async () => {
    const rtsp = await rtspCameras(1)
    onTestFinished(() => rtsp.stop())
    const service = await TestService.start({
      pipeline: { cameras: [{ id: 'cam-1', url: rtsp.url('/cam1'), sampleFps: 3 }], log: { level: 'debug' } },
      stderrTo: fullDisk,
    })
    onTestFinished(() => service[Symbol.asyncDispose]())
    const stream = await service.stream()
    await stream.detections('cam-1', 2)

    const store = join(service.dir, 'data')
    mkdirSync(store, { recursive: true })
    const beside = join(store, `cameras.json.${service.pid}.tmp`)
    symlinkSync(fullDisk, beside)
    const kept = { id: 'kept', url: 'push:', persist: true }
    await expect(service.send('POST', '/api/v1/cameras', kept)).rejects.toThrow(/503 .*GANTRY_ENVIRONMENT/)
    await expect(service.camera('kept')).rejects.toThrow(/404/)
    await stream.detections('cam-1', 2)

    rmSync(beside, { force: true })
    await service.send('POST', '/api/v1/cameras', kept)
    expect(existsSync(join(store, 'cameras.json'))).toBe(true)
    await stream.detections('cam-1', 2)
    const closed = stream.closed()
    service.kill('SIGTERM')
    expect(await closed).toBe(1001)
    expect(await service.exited()).toBe(0)
  },
  120_000,
)

it('R110: with no room for results it publishes them, says so, and stores again once there is some, without a restart', async () => {
  const rtsp = await rtspCameras(1)
  onTestFinished(() => rtsp.stop())
  const service = await TestService.start({
    pipeline: { cameras: [{ id: 'cam-1', url: rtsp.url('/cam1'), sampleFps: 10 }] },
    // No file may grow beyond it.
    under: ['prlimit', '--fsize=600000:unlimited'],
  })
  onTestFinished(() => service[Symbol.asyncDispose]())
  const stream = await service.stream()
  const storeIs = (state: string) =>
    until(`the store is ${state}`, async () => (await service.readiness()).store.state === state, 60_000)
  await storeIs('up')
  await storeIs('degraded')
  const { ready, reasons } = await service.readiness()
  expect([ready, reasons]).toEqual([true, [expect.stringContaining('results are not stored')]])
  const seen = stream.messages.length
  await stream.detections('cam-1', 5)
  expect(stream.messages.length).toBeGreaterThan(seen)
  await promisify(execFile)('prlimit', ['--pid', String(service.pid), '--fsize=unlimited:unlimited'])
  await storeIs('up')
  const last = (await stream.detections('cam-1', 3)).at(-1)
  const page = await service.json<RecentPage>('/api/v1/detections?limit=1000')
  expect(page.items.map(({ seq }) => seq)).toContain(last?.seq)
  expect(service.stderr).toContain('records are stored again')
}, 180_000)
