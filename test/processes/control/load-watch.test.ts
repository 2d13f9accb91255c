import { describe, expect, it } from 'vitest'
import { cameraSchema } from '../../../src/config/camera.js'
import { LoadWatch, machineUse } from '../../../src/processes/control/load-watch.js'
import type { CameraStatus } from '../../../src/vision/camera-state.js'

const timingsMs = { queue: 1, infer: 40, postprocess: 2 }

function rig(instances = 2, isMachineOurs = true) {
  const ids = new Map<string, CameraStatus['state']>()
  let seconds = 0
  const machine = { busySeconds: 100, cores: 4 }
  const watch = new LoadWatch(
    () =>
      [...ids].map(([id, state]) => ({
        config: cameraSchema.parse({ id, url: 'rtsp://192.0.2.1/x' }),
        status: { state, reason: '', sinceMs: 0, attempts: 1 },
        receivedFrames: seconds * 5,
        decoderCores: 0.25,
        p99Ms: id === 'slow' ? 150 : 90,
      })),
    () => instances,
    () => ({ cores: machine.cores, busySeconds: isMachineOurs ? machine.busySeconds : undefined }),
  )
  return {
    watch,
    is: (id: string, state: CameraStatus['state']) => ids.set(id, state),
    /** Each second 10 frames in batches of two, 0.3 s of CPU time of the engine, and 1.5 busy cores. */
    pass: (count: number) => {
      for (let second = 0; second < count; second += 1) {
        for (let frame = 0; frame < 10; frame += 1) watch.ran({ timingsMs, batchSize: 2 })
        watch.engineUsed(0.3)
        machine.busySeconds += 1.5
        seconds += 1
        watch.look(seconds * 1_000)
      }
    },
  }
}

describe('what is measured of the service', () => {
  it('is nothing before the same cameras have been live for ten seconds', () => {
    const { watch, is, pass } = rig()
    is('a', 'live')
    is('slow', 'live')
    pass(9)
    expect(watch.measured).toBeUndefined()
    pass(1)
    expect(watch.measured?.load).toMatchObject({
      cameras: 2,
      cores: { all: 4, busy: 1.5 },
      p99Ms: 150,
    })
    // 40 / 2 + 2 ms of an instance for each of 10 frames a second.
    expect(watch.measured?.load.runMs).toBeCloseTo(22)
    expect(watch.measured?.load.instances).toEqual({ all: 2, busy: expect.closeTo(0.22) as number })
    expect(watch.measured?.load.cpuMsPerFrame).toBeGreaterThanOrEqual(30)
    expect(watch.measured?.costs.get('a')).toEqual({ framesPerSecond: 5, decoderCores: 0.25 })
  })

  it('stays as it was while cameras come and go, and is measured anew with those that stay', () => {
    const { watch, is, pass } = rig()
    is('a', 'live')
    pass(12)
    const before = watch.measured
    is('b', 'connecting')
    pass(3)
    expect([...(watch.measured?.costs.keys() ?? [])]).toEqual(['a'])
    is('b', 'live')
    pass(9)
    expect([...(watch.measured?.costs.keys() ?? [])]).toEqual(['a'])
    pass(1)
    expect([...(watch.measured?.costs.keys() ?? [])]).toEqual(['a', 'b'])
    expect(watch.measured).not.toBe(before)
  })

  it('takes its own processes where a part of the machine is all that it may use', () => {
    const { watch, is, pass } = rig(2, false)
    is('a', 'live')
    pass(10)
    // 0.3 of the engine and 0.25 of the decoder, and what the test itself takes.
    expect(watch.measured?.load.cores.busy).toBeGreaterThanOrEqual(0.55)
  })

  it('forgets nothing where no frame came', () => {
    const { watch, is } = rig()
    is('a', 'live')
    for (let second = 1; second <= 20; second += 1) watch.look(second * 1_000)
    expect(watch.measured).toBeUndefined()
  })

  it('reads this machine', () => {
    expect(machineUse().cores).toBeGreaterThan(0)
  })
})
