/**
 * The detector of a build, saturated by cameras that offer a frame as soon as their last one has ended.
 *
 *     node detector-child.mjs DIST REPOSITORY ENSEMBLE INSTANCES
 *
 * A line with milliseconds begins a round; its line of JSON is `{ frames, cpuMs, ms }`. Only names that builds of other commits have
 * too are imported.
 */
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'

const [dist, repository, ensemble, instances] = process.argv.slice(2)
const { createCameraDetector } = await import(`${dist}/ensemble/create-camera-detector.js`)
const { inferenceSchema } = await import(`${dist}/config/inference.js`)
const { createLog } = await import(`${dist}/lifecycle/log.js`)

const cameras = 8
const buffers = []
let saturating = false
let inFlight = 0
let inferred = 0
let drained = () => undefined

const ended = (frame, isInferred) => {
  buffers.push(frame.rgbHwc)
  inFlight -= 1
  if (isInferred) inferred += 1
  if (saturating) offer(frame.cameraId, frame.seq + 1)
  else if (inFlight === 0) drained()
}
const fail = (error) => {
  throw error
}
const detector = await createCameraDetector({
  repositories: [repository],
  repositoryDir: repository,
  ensemble,
  inference: inferenceSchema.parse({ providers: ['cpu'], instances: Number(instances) }),
  log: createLog({ level: 'error', format: 'json' }, 'bench'),
  listener: {
    detected: (frame) => ended(frame, true),
    superseded: (frame) => ended(frame, false),
    shed: (frame) => ended(frame, false),
    hung: fail,
    instanceExited: fail,
  },
})
const size = detector.info.format.input
for (let camera = 0; camera < cameras; camera++)
  buffers.push(new Uint8Array(size.widthPx * size.heightPx * 3).fill(114).buffer)

function offer(cameraId, seq) {
  inFlight += 1
  detector.offer({
    cameraId,
    seq,
    capturedAtMs: Date.now(),
    arrivedMs: 0,
    ptsMs: 0,
    quality: 'ok',
    source: size,
    regionPx: { x: 0, y: 0, ...size },
    letterbox: { scale: 1, padXPx: 0, padYPx: 0 },
    rgbHwc: buffers.pop(),
  })
}

async function round(forMs) {
  const cpu = process.cpuUsage()
  const beganMs = performance.now()
  inferred = 0
  saturating = true
  for (let camera = 0; camera < cameras; camera++) offer(`cam-${camera}`, 1)
  await pause(forMs)
  saturating = false
  await new Promise((resolve) => (drained = resolve))
  const { user, system } = process.cpuUsage(cpu)
  return { frames: inferred, cpuMs: (user + system) / 1_000, ms: performance.now() - beganMs }
}

process.stdout.write('ready\n')
for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(`${JSON.stringify(await round(Number(line)))}\n`)
await detector.stop(5_000)
