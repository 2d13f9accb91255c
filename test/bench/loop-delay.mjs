// Loaded into every process of a service (NODE_OPTIONS=--import). In that of the model server it writes two numbers in ms to the file
// GANTRY_LOOP_DELAY_FILE, ten times a second: the longest delay of its event loop, and the most processor time that its thread took between
// two timers of 5 ms, which is what the loop itself was held up by, on a machine that does other things too. To remove the file begins anew.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

const resolution = 5
const file = process.env.GANTRY_LOOP_DELAY_FILE

if (isMainThread && file !== undefined && process.argv[1]?.includes('model-server/main.js')) {
  const delay = monitorEventLoopDelay({ resolution })
  delay.enable()
  const ranMs = () => Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]) / 1e6
  let lastMs = ranMs()
  let mostMs = 0
  setInterval(() => {
    const nowMs = ranMs()
    mostMs = Math.max(mostMs, nowMs - lastMs)
    lastMs = nowMs
  }, resolution).unref()
  setInterval(() => {
    if (!existsSync(file)) {
      delay.reset()
      mostMs = 0
    }
    writeFileSync(file, `${Math.max(0, delay.max / 1e6 - resolution)} ${mostMs}`)
  }, 100).unref()
}
