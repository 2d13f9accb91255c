// Holds its event loop for as long as it is told, in the way of its first argument, and then tells that it goes on.
import { isMainThread, Worker } from 'node:worker_threads'

const never = new Int32Array(new SharedArrayBuffer(4))

function compute(ms) {
  const untilMs = performance.now() + ms
  while (performance.now() < untilMs);
}

if (!isMainThread) compute(60_000)
else {
  const [work] = process.argv.slice(2)
  if (work === 'wait-beside-work') new Worker(new URL(import.meta.url)).unref()
  process.on('message', (ms) => {
    if (work === 'compute') compute(Number(ms))
    else Atomics.wait(never, 0, 0, Number(ms))
    process.send('went on')
  })
  process.on('disconnect', () => process.exit())
  process.send('here')
}
