import { cpuSeconds } from './cpu.js'
import { ownBytes } from './memory.js'
import { descendants } from './processes.js'

/** What the processes of a service are there for. */
export const serviceParts = ['decoders', 'engine', 'control', 'stream', 'modelServer'] as const
export type ByServicePart = Record<(typeof serviceParts)[number], number>

/** CPU seconds that the processes of a service, those that run now, have used so far. */
export function serviceCpuSeconds(pid: number): ByServicePart {
  return byPart(pid, (each) => {
    try {
      return cpuSeconds(each)
    } catch {
      // It ended meanwhile.
      return 0
    }
  })
}

/** Memory of the processes of a service. */
export function serviceBytes(pid: number): ByServicePart {
  return byPart(pid, ownBytes)
}

function byPart(pid: number, figureOf: (pid: number) => number): ByServicePart {
  const below = descendants(pid)
  const sumOf = (part: string) =>
    below.filter(({ command }) => command.includes(part)).reduce((sum, each) => sum + figureOf(each.pid), 0)
  return {
    decoders: sumOf('ffmpeg'),
    engine: sumOf('processes/engine/main'),
    control: figureOf(pid),
    stream: sumOf('stream/main'),
    modelServer: sumOf('model-server/main'),
  }
}
