// Gives way as the model server does, then says what its threads may use. Started in a session of its own.
import { readFileSync, readdirSync } from 'node:fs'
import { getPriority } from 'node:os'
import { Worker } from 'node:worker_threads'
import { giveWay } from '../../dist/lifecycle/give-way.js'

giveWay(Number(process.argv[2]))
const worker = new Worker('setInterval(() => undefined, 1000)', { eval: true })
await new Promise((resolve) => worker.once('online', resolve))
const allowed = readdirSync('/proc/self/task').map(
  (tid) => /Cpus_allowed_list:\s+(\S+)/.exec(readFileSync(`/proc/self/task/${tid}/status`, 'utf8'))[1],
)
const session = (() => {
  try {
    return Number(/nice (-?\d+)/.exec(readFileSync('/proc/self/autogroup', 'utf8'))[1])
  } catch {
    return null
  }
})()
process.send({ nice: getPriority(), session, allowed })
process.disconnect()
await worker.terminate()
