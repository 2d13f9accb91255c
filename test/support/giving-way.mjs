// Gives way as the model server does, or takes less as the stream process does, then says how its threads are scheduled. Started in a session of its own.
import { readFileSync, readdirSync } from 'node:fs'
import { getPriority } from 'node:os'
import { Worker } from 'node:worker_threads'
import { giveWay, takeLess } from '../../dist/lifecycle/give-way.js'

const [nice, way] = process.argv.slice(2)
if (way === 'takeLess') takeLess(Number(nice))
else giveWay(Number(nice))
const worker = new Worker('setInterval(() => undefined, 1000)', { eval: true })
await new Promise((resolve) => worker.once('online', resolve))
/** Field 41 of the thread's `stat`, of which the second may hold anything up to its last bracket. */
const policies = readdirSync('/proc/self/task').map((tid) => {
  const stat = readFileSync(`/proc/self/task/${tid}/stat`, 'utf8')
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[38])
})
const session = (() => {
  try {
    return Number(/nice (-?\d+)/.exec(readFileSync('/proc/self/autogroup', 'utf8'))[1])
  } catch {
    return null
  }
})()
process.send({ nice: getPriority(), session, policies })
process.disconnect()
await worker.terminate()
