import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { rtspCameras } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'

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
