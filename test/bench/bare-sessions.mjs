/**
 * ONNX Runtime and nothing else: `instances` worker threads, each with one session of one thread, running uint8 or float frames back to
 * back. Prints CPU seconds and frames per second.
 *
 *     node test/bench/bare-sessions.mjs MODEL.onnx INSTANCES SECONDS WIDTH HEIGHT [FPS]
 *
 * With FPS, all workers together run that many frames a second, one after the other: a session that sleeps between frames finds its
 * caches cold.
 */
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads'

const warmUpRuns = 5

async function worker() {
  const { InferenceSession, Tensor } = (await import('onnxruntime-node')).default
  const { model, go, end, width, height, periodMs, delayMs } = workerData
  const session = await InferenceSession.create(model, {
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    extra: { session: { intra_op: { allow_spinning: '0' } } },
  })
  const { name, type, shape } = session.inputMetadata[0]
  const open = type === 'uint8' ? [1, height, width, 3] : [1, 3, height, width]
  const dims = shape.map((dim, index) => (typeof dim === 'number' && dim > 0 ? dim : open[index]))
  const size = dims.reduce((product, dim) => product * dim, 1)
  const data = type === 'uint8' ? new Uint8Array(size).fill(114) : new Float32Array(size).fill(0.4)
  const feeds = { [name]: new Tensor(type, data, dims) }
  for (let run = 0; run < warmUpRuns; run += 1) await session.run(feeds)
  parentPort.postMessage('ready')
  Atomics.wait(go, 0, 0)
  const idle = new Int32Array(new SharedArrayBuffer(4))
  Atomics.wait(idle, 0, 0, delayMs)
  let dueMs = performance.now()
  let frames = 0
  while (Atomics.load(end, 0) === 0) {
    await session.run(feeds)
    frames += 1
    dueMs += periodMs
    if (periodMs > 0) Atomics.wait(idle, 0, 0, Math.max(0, dueMs - performance.now()))
  }
  await session.release()
  parentPort.postMessage({ frames })
  parentPort.close()
}

async function main() {
  const [model, instances, seconds, width, height, fps] = process.argv.slice(2)
  const periodMs = fps === undefined ? 0 : (1000 * Number(instances)) / Number(fps)
  const go = new Int32Array(new SharedArrayBuffer(4))
  const end = new Int32Array(new SharedArrayBuffer(4))
  const workers = Array.from(
    { length: Number(instances) },
    (_, index) =>
      new Worker(new URL(import.meta.url), {
        workerData: {
          model,
          go,
          end,
          width: Number(width),
          height: Number(height),
          periodMs,
          delayMs: (periodMs * index) / Number(instances),
        },
      }),
  )
  const next = (thread) => new Promise((resolve) => thread.once('message', resolve))
  await Promise.all(workers.map(next))
  const cpu0 = process.cpuUsage()
  const start = performance.now()
  Atomics.store(go, 0, 1)
  Atomics.notify(go, 0)
  await new Promise((resolve) => setTimeout(resolve, Number(seconds) * 1000))
  Atomics.store(end, 0, 1)
  const results = await Promise.all(workers.map(next))
  const used = process.cpuUsage(cpu0)
  const frames = results.reduce((sum, result) => sum + result.frames, 0)
  const elapsedS = (performance.now() - start) / 1e3
  process.stdout.write(
    JSON.stringify({
      cpuSecondsPerFrame: (used.user + used.system) / 1e6 / frames,
      framesPerSecond: frames / elapsedS,
      frames,
    }),
  )
}

await (isMainThread ? main() : worker())
