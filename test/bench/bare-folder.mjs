// A folder of pictures through bare ONNX Runtime, as a script has it that fills the machine: sharp decodes, scales and pads; a worker
// thread for each core has a session of one thread, which runs; nobody reads the boxes. Prints {pictures, seconds, cpuSeconds}:
//   node bare-folder.mjs MODEL.onnx WIDTH HEIGHT FOLDER
import { readFile, readdir } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads'

process.env.ORT_DISABLE_TELEMETRY ||= '1'

if (isMainThread) await main()
else await worker()

async function worker() {
  const { default: ort } = await import('onnxruntime-node')
  const { model, shape } = workerData
  const session = await ort.InferenceSession.create(model, {
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    extra: { session: { intra_op: { allow_spinning: '0' } } },
  })
  const [input] = session.inputNames
  parentPort.on('message', async (pixels) => {
    await session.run({ [input]: new ort.Tensor('uint8', pixels, shape) })
    parentPort.postMessage('done')
  })
}

async function main() {
  const { default: sharp } = await import('sharp')
  sharp.concurrency(1)
  sharp.cache(false)
  const [model, width, height, folder] = process.argv.slice(2)
  const [widthPx, heightPx] = [Number(width), Number(height)]
  const shape = [1, heightPx, widthPx, 3]
  const background = { r: 114, g: 114, b: 114 }
  const workers = Array.from(
    { length: availableParallelism() },
    () => new Worker(new URL(import.meta.url), { workerData: { model, shape } }),
  )
  const free = [...workers]
  const waiting = []
  const take = () => free.pop() ?? new Promise((resolve) => waiting.push(resolve))
  const give = (worker) => (waiting.length > 0 ? waiting.shift()(worker) : free.push(worker))

  const one = async (path) => {
    const pixels = await sharp(await readFile(path))
      .autoOrient()
      .resize(widthPx, heightPx, { fit: 'contain', kernel: 'linear', background })
      .removeAlpha()
      .raw()
      .toBuffer()
    const worker = await take()
    const own = new Uint8Array(pixels)
    const done = new Promise((resolve) => worker.once('message', resolve))
    worker.postMessage(own, [own.buffer])
    await done
    give(worker)
  }
  const all = async (paths) => {
    const left = [...paths]
    const lane = async () => {
      for (let path = left.pop(); path !== undefined; path = left.pop()) await one(path)
    }
    await Promise.all(Array.from({ length: 2 * workers.length }, lane))
  }

  const paths = (await readdir(folder)).map((name) => join(folder, name))
  await all(paths.slice(0, 40))
  const cpu = process.cpuUsage()
  const beganMs = performance.now()
  await all(paths)
  const seconds = (performance.now() - beganMs) / 1e3
  const { user, system } = process.cpuUsage(cpu)
  process.stdout.write(JSON.stringify({ pictures: paths.length, seconds, cpuSeconds: (user + system) / 1e6 }))
  process.exit()
}
