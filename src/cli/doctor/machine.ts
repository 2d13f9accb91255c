import { availableParallelism, totalmem } from 'node:os'
import type { Finding } from '../findings.js'
import { programOutput } from './program-output.js'

const gib = 1024 ** 3

export function examineNode(version = process.versions.node): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const recent = major > 20 || (major === 20 && minor >= 19)
  if (recent) return { subject: 'node', state: 'ok', detail: version }
  return { subject: 'node', state: 'failed', detail: version, fix: 'install Node 20.19 or newer' }
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
  const version = (await programOutput('java', ['-version']))?.split('\n')[0]
  if (version) return { subject: 'java', state: 'ok', detail: `${version} (for the tests alone)` }
  return { subject: 'java', state: 'skipped', detail: 'not found; only the tests against Kafka need it' }
}
