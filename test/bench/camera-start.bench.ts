/**
 * From the start of the service to the first result of every camera.
 *
 *     npm run build:server && npx tsx test/bench/camera-start.bench.ts [cameras] [rounds] [clip] [settings of the pipeline file as JSON]
 *
 * The RTSP server is a process of its own. `loadedCores` is CPU of all processes of the service over the time until then.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { treeCpuSeconds } from '../support/cpu.js'
import { dockClip } from '../support/demo-cameras.js'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'
import { quantile, report } from './bench.js'
import { NumberedCameras } from './peer-loop/sides.js'

const [countText = '64', roundsText = '3', clip = dockClip, settings = '{}'] = process.argv.slice(2)
const count = Number(countText)
const rounds = Number(roundsText)

const folder = await mkdtemp(join(tmpdir(), 'gantry-bench-'))
const cameras = await NumberedCameras.start(folder, [clip], count)
try {
  const firstS: number[] = []
  const readyS: number[] = []
  const cores: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const beganMs = performance.now()
    await using service = await TestService.start({
      pipeline: {
        ...(JSON.parse(settings) as Record<string, unknown>),
        cameras: cameras.urls.map((url, id) => ({
          id: `cam-${id}`,
          url,
          sampleFps: 1,
        })),
      },
    })
    readyS.push(service.startedInMs / 1e3)
    const inferred = async () => {
      const lines = (await service.metrics()).matchAll(
        /^gantry_frames_total\{.*state="inferred".*\} (\d+)$/gm,
      )
      return [...lines].filter(([, frames]) => Number(frames) > 0).length === count
    }
    await until('a result of every camera', inferred, 120_000)
    firstS.push((performance.now() - beganMs) / 1e3)
    cores.push(treeCpuSeconds(service.pid) / firstS.at(-1)!)
  }
  report('camera-start', 's', {
    ready: quantile(readyS, 0.5),
    every: quantile(firstS, 0.5),
    slowest: quantile(firstS, 1),
    loadedCores: quantile(cores, 0.5),
    cameras: count,
    rounds,
  })
} finally {
  await cameras.stop()
  await rm(folder, { recursive: true, force: true })
}
