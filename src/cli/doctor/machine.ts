import { availableParallelism, totalmem } from 'node:os'
import type { Finding } from '../findings.js'
import { bestNode, isNodeNewEnough, oldestNode } from '../node-version.js'
import { programOutput } from './program-output.js'

const gib = 1024 ** 3

/** Lines that never had long-term support; from 27 on each has it. */
const shortLived = [23, 25]

export function examineNode(version: string = process.versions.node): Finding {
  const subject = 'node'
  if (!isNodeNewEnough(version))
    return {
      subject,
      state: 'failed',
      detail: version,
      fix: `install Node ${bestNode}, or ${oldestNode()} at least`,
    }
  const major = Number.parseInt(version, 10)
  if (shortLived.includes(major))
    return {
      subject,
      state: 'warning',
      detail: `${version}: a line without long-term support`,
      fix: `install Node ${bestNode}`,
    }
  const best = major < bestNode ? ` (${bestNode} is recommended)` : ''
  return { subject, state: 'ok', detail: `${version}${best}` }
}

export function examineMachine(): Finding[] {
  const cores = availableParallelism()
  const limitBytes = process.constrainedMemory()
  const bytes = limitBytes > 0 && limitBytes < totalmem() ? limitBytes : totalmem()
  const memory = `${(bytes / gib).toFixed(1)} GiB${bytes < totalmem() ? ' (limit of this container)' : ''}`
  return [
    { subject: 'cores', state: 'ok', detail: `${cores}: as many inference instances on CPU` },
    bytes < gib
      ? {
          subject: 'memory',
          state: 'warning',
          detail: memory,
          fix: 'give it 1 GiB or lower inference.instances',
        }
      : { subject: 'memory', state: 'ok', detail: memory },
  ]
}

/** Without it a decoder would outlive a service that is killed. */
export async function examineSetpriv(): Promise<Finding> {
  const found = await programOutput('setpriv', ['--version'])
  if (found)
    return {
      subject: 'setpriv',
      state: 'ok',
      detail: 'decoders end with the service, even when it is killed',
    }
  return {
    subject: 'setpriv',
    state: 'warning',
    detail: 'not found: decoders may outlive a service that is killed',
    fix: 'sudo apt-get install util-linux',
  }
}

export async function examineGpus(): Promise<Finding> {
  const query = ['--query-gpu=name,memory.total,driver_version', '--format=csv,noheader']
  const output = await programOutput('nvidia-smi', query)
  const detail = output?.trim().split('\n').join('; ')
  return { subject: 'gpu', state: 'ok', detail: detail ? detail : 'no NVIDIA card: models run on the CPU' }
}

export async function examineJava(): Promise<Finding> {
  // Without the flag it writes figures of itself into /tmp.
  const version = (await programOutput('java', ['-XX:-UsePerfData', '-version']))?.split('\n')[0]
  if (version) return { subject: 'java', state: 'ok', detail: `${version} (for the tests alone)` }
  return { subject: 'java', state: 'skipped', detail: 'not found; only the tests against Kafka need it' }
}
