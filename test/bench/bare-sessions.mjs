/**
 * ONNX Runtime and nothing else: `instances` worker threads, each with one session of one thread, which together run FPS frames a
 * second, one after the other, of those in FRAMES: packed uint8 RGB of WIDTH x HEIGHT, one behind the other. A session that sleeps
 * between frames, and a frame that another process wrote, find their caches cold.
 *
 *     node test/bench/bare-sessions.mjs MODEL.onnx INSTANCES WIDTH HEIGHT FPS FRAMES
 *
 * For every line on stdin, a number of seconds, it runs that long and prints `{"cpuSecondsPerFrame", "frames"}` as a line; the end of
 * stdin ends it.
 */
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads'

// As the service does it (src/lifecycle/no-telemetry.ts): in the main thread, before the library is loaded.
process.env.ORT_DISABLE_TELEMETRY ||= '1'

const warmUpRuns = 5

async function worker() {
  const { InferenceSession, Tensor } = (await import('onnxruntime-node')).default
  const { model, width, height, periodMs, offsetMs, path, first } = workerData
  const session = await InferenceSession.create(model, {
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    extra: { session: { intra_op: { allow_spinning: '0' } } },
  })
  const [input] = session.inputNames
  const bytes = readFileSync(path)
  const size = width * height * 3
  const feeds = Array.from({ length: bytes.length / size }, (_, index) => ({
    // A copy each: frames of the service have buffers of their own.
    [input]: new Tensor('uint8', new Uint8Array(bytes.subarray(index * size, (index + 1) * size)), [
      1,
      height,
      width,
      3,
    ]),
  }))
  let frame = first
  const next = () => feeds[frame++ % feeds.length]
  for (let run = 0; run < warmUpRuns; run += 1) await session.run(next())
  const idle = new Int32Array(new SharedArrayBuffer(4))
  parentPort.on('message', async (seconds) => {
    Atomics.wait(idle, 0, 0, offsetMs)
    const beganMs = performance.now()
    let frames = 0
    for (; performance.now() - beganMs < seconds * 1_000; frames += 1) {
      await session.run(next())
      Atomics.wait(idle, 0, 0, Math.max(0, beganMs + (frames + 1) * periodMs - performance.now()))
    }
    parentPort.postMessage(frames)
  })
  parentPort.postMessage('ready')
}

async function main() {
  const [model, ...rest] = process.argv.slice(2)
  const path = rest.pop()
  const [instances, width, height, fps] = rest.map(Number)
  const workers = Array.from({ length: instances }, (_, index) => {
    const periodMs = (1_000 * instances) / fps
    const offsetMs = (periodMs * index) / instances
    return new Worker(new URL(import.meta.url), {
      workerData: { model, width, height, periodMs, offsetMs, path, first: index * 7 },
    })
  })
  const answers = () =>
    Promise.all(workers.map((each) => new Promise((resolve) => each.once('message', resolve))))
  await answers()
  process.stdout.write('{}\n')
  for await (const seconds of createInterface({ input: process.stdin })) {
    const before = process.cpuUsage()
    const ran = answers()
    for (const each of workers) each.postMessage(Number(seconds))
    const frames = (await ran).reduce((sum, each) => sum + each, 0)
    const { user, system } = process.cpuUsage(before)
    process.stdout.write(
      `${JSON.stringify({ cpuSecondsPerFrame: (user + system) / 1e6 / frames, frames })}\n`,
    )
  }
  await Promise.all(workers.map((each) => each.terminate()))
}

await (isMainThread ? main() : worker())
