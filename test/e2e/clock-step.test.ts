import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { rtspCameras } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'

const preload = fileURLToPath(new URL('../support/stepping-clock.mjs', import.meta.url))
const hourMs = 3_600_000
const cameras = ['cam-1', 'cam-2']

it('R6: an hour ahead and two hours back, in a zone with summer time, reconnect nothing and repeat nothing', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-clock-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const clock = join(folder, 'offset')
  writeFileSync(clock, '0')
  const rtsp = await rtspCameras(cameras.length)
  onTestFinished(() => rtsp.stop())
  const service = await TestService.start({
    pipeline: {
      cameras: cameras.map((id, index) => ({ id, url: rtsp.url(`/cam${index + 1}`), sampleFps: 4 })),
    },
    env: { TZ: 'Europe/Berlin', NODE_OPTIONS: `--import=${preload}`, GANTRY_TEST_CLOCK: clock },
  })
  onTestFinished(() => service[Symbol.asyncDispose]())
  const stream = await service.stream()
  onTestFinished(() => stream.close())
  const wrongByMs = ({ capturedAt }: { capturedAt: string }) => Date.parse(capturedAt) - Date.now()

  const [before] = await stream.detections('cam-1', 3)
  expect(Math.abs(wrongByMs(before!))).toBeLessThan(60_000)
  writeFileSync(clock, String(hourMs))
  await stream.next((message) => message.type === 'detections' && wrongByMs(message) > hourMs / 2)
  await stream.detections('cam-1', 8)
  writeFileSync(clock, String(-hourMs))
  await stream.detections('cam-1', 12)

  for (const id of cameras) {
    const { status } = await service.camera(id)
    expect(status).toMatchObject({ state: 'live', attempts: 1 })
    const told = stream.messages.flatMap((message) =>
      message.type === 'detections' && message.cameraId === id ? [message] : [],
    )
    const seqs = told.map(({ seq }) => seq)
    expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b))
    const times = told.map(({ capturedAt }) => capturedAt)
    expect(times).toEqual([...times].sort())
    for (const time of times) expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  }
  const ready = await service.ready(1_000)
  expect(ready.ready).toBe(true)
  expect(await service.metric(/gantry_engine_restarts_total\{engine="0"\}/)).toBe(0)
  for (const line of service.stderr.trim().split('\n'))
    expect(JSON.parse(line)).toMatchObject({ time: expect.stringMatching(/Z$/) as string })
}, 120_000)
