import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { TestStream } from '../support/service.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

describe('a scene in which nothing moves', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-still-'))
  let service: TestService
  let stream: TestStream

  beforeAll(async () => {
    const wall = { width: 320, height: 240, channels: 3 as const, background: { r: 90, g: 120, b: 60 } }
    await sharp({ create: wall }).jpeg().toFile(join(folder, 'a.jpg'))
    service = await TestService.start({
      pipeline: {
        mediaRoot: folder,
        cameras: [
          { id: 'still', url: folder, sampleFps: 20, staticScene: { maxAgeMs: 2_000 }, frozenAfterMs: 1_000 },
          { id: 'every', url: folder, sampleFps: 20, frozenAfterMs: 0 },
        ],
      },
    })
    stream = await service.stream({ cameras: ['still'] })
  })

  afterAll(async () => {
    stream?.close()
    await service?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  const frames = (camera: string, state: string) =>
    service.metric(new RegExp(`gantry_frames_total\\{camera="${camera}",state="${state}",cause=""\\}`))

  it('is analysed now and then; in between the result is used again and says so', async () => {
    // When depends on the machine: a result that took longer than it may be used again is not.
    const reusedSoFar = () =>
      stream.messages.filter((m) => m.type === 'detections' && m.resultOfSeq !== undefined).length
    await until('results used again', () => reusedSoFar() >= 3, 60_000)
    const messages = stream.messages.filter((message) => message.type === 'detections')
    const own = new Set(messages.filter(({ resultOfSeq }) => resultOfSeq === undefined).map(({ seq }) => seq))
    const reused = messages.filter(({ resultOfSeq }) => resultOfSeq !== undefined)
    for (const { seq, resultOfSeq, timingsMs } of reused) {
      expect(resultOfSeq).toBeLessThan(seq)
      expect(timingsMs.infer).toBe(0)
      if (resultOfSeq! >= messages[0]!.seq) expect(own).toContain(resultOfSeq)
    }
    const seqs = messages.map(({ seq }) => seq)
    expect(seqs).toEqual([...seqs].sort((a, b) => a - b))
  }, 90_000)

  it('is counted as reused, and only where the camera asks for it', async () => {
    await until(
      'both cameras',
      async () => (await frames('still', 'reused')) > 5 && (await frames('every', 'inferred')) > 5,
    )
    await until('an old result replaced', async () => (await frames('still', 'inferred')) > 1)
    expect(await frames('every', 'reused')).toBe(0)
    const { received, shed, ...endings } = (await service.camera('still')).stats.frames
    const ended = [...Object.values(endings), ...Object.values(shed)].reduce((sum, count) => sum + count, 0)
    expect(received - ended).toBeGreaterThanOrEqual(0)
    expect(received - ended).toBeLessThanOrEqual(3)
  })

  it('R2: is reported as frozen where the camera asks for it, without a restart', async () => {
    await until('the alarm', async () => (await service.camera('still')).stats.frozen)
    expect(await service.metric(/gantry_source_warnings_total\{camera="still",kind="frozen_picture"\}/)).toBe(
      1,
    )
    expect(await service.metric(/gantry_camera_frozen\{camera="still"\}/)).toBe(1)
    const still = await service.camera('still')
    expect(still.status).toMatchObject({ state: 'live', attempts: still.status.attempts })
    expect((await service.camera('every')).stats.frozen).toBe(false)
  })
})
