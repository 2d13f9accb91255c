import { execFile, spawnSync } from 'node:child_process'
import { withDeathSignal } from '../../lifecycle/death-signal.js'
import { gpuQuery, type GpuReading, gpuReadings } from '../../metrics/gpu-reading.js'

/** Longest that `nvidia-smi` is waited for, and where a thread stands still meanwhile, one whose run has failed. */
const atMostMs = { awaited: 5_000, standing: 2_000 }

/** The cards that `nvidia-smi` tells of; none where it is not there or fails. */
export function askGpus(env: NodeJS.ProcessEnv = process.env): Promise<readonly GpuReading[]> {
  const options = { timeout: atMostMs.awaited, killSignal: 'SIGKILL' as const, env }
  return new Promise((resolve) => {
    const [command, args] = withDeathSignal('nvidia-smi', gpuQuery)
    execFile(command, args, options, (error, stdout) => resolve(error === null ? gpuReadings(stdout) : []))
  })
}

/** The same for whoever cannot wait. */
export function askGpusSync(): readonly GpuReading[] {
  const { stdout, error } = spawnSync('nvidia-smi', gpuQuery, {
    encoding: 'utf8',
    timeout: atMostMs.standing,
    killSignal: 'SIGKILL',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  return error === undefined ? gpuReadings(stdout) : []
}
