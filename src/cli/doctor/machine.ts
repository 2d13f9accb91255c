import { availableParallelism, totalmem } from 'node:os'
import { askGpus } from '../../backends/onnxruntime/ask-gpus.js'
import type { GpuReading } from '../../metrics/gpu-reading.js'
import type { Finding } from '../findings.js'
import { nvidiaDriver } from '../gpu/nvidia-driver.js'
import { bestNode, isNodeNewEnough, oldestNode } from '../node-version.js'
import { programOutput } from '../../lifecycle/program-output.js'

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

export async function examineGpus(env: NodeJS.ProcessEnv = process.env): Promise<Finding> {
  const [gpus, driver] = await Promise.all([askGpus(env), nvidiaDriver(env)])
  if (gpus.length === 0)
    return { subject: 'gpu', state: 'ok', detail: 'no NVIDIA card: models run on the CPU' }
  const cards = gpus.map((gpu) => `GPU ${gpu.index}: ${gpu.name}${memoryText(gpu)}`)
  return {
    subject: 'gpu',
    state: 'ok',
    detail: [...cards, ...(driver === undefined ? [] : [`driver ${driver.version}`])].join('; '),
  }
}

function memoryText({ memoryUsedBytes, memoryTotalBytes }: GpuReading): string {
  if (memoryTotalBytes === null) return ''
  const used = memoryUsedBytes === null ? '' : `${(memoryUsedBytes / gib).toFixed(1)} of `
  return `, ${used}${(memoryTotalBytes / gib).toFixed(1)} GiB${used && ' used'}`
}

export async function examineJava(): Promise<Finding> {
  // Without the flag it writes figures of itself into /tmp.
  const version = (await programOutput('java', ['-XX:-UsePerfData', '-version']))?.split('\n')[0]
  if (version) return { subject: 'java', state: 'ok', detail: `${version} (for the tests alone)` }
  return { subject: 'java', state: 'skipped', detail: 'not found; only the tests against Kafka need it' }
}
