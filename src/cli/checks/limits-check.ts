import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { analysedUrl } from '../../config/camera-url-settings.js'
import { connectsAtOnce, type PipelineConfig } from '../../config/pipeline.js'
import { limitsOf, type Limits } from '../../lifecycle/system-limit.js'
import type { Finding } from '../findings.js'

/**
 * Descriptors, as `/proc/PID/fd` had them with `gantry demo` at 1 and 8 cameras: an engine 33 and 2 for each camera, control 31, the stream
 * and the model server 23 each. A decoder that is being started takes 8 more for a moment. An HTTP camera has a gate with connections of
 * its own besides. The rest is margin.
 */
const files = { process: 64, camera: 2, httpCamera: 8, starting: 8 }
/** Threads, as `/proc/PID/task` had them: control 11, stream 7, engine 11 and its instances, model server 11, a decoder 1. */
const threads = { service: 40, engine: 16, camera: 2 }

export type SystemLimits = Readonly<{ openFiles: Limits; processes: Limits; cgroupPids: number | undefined }>

/** Of this shell or container; a service that systemd starts has those of its unit. */
export function systemLimits(): SystemLimits {
  return {
    openFiles: limitsOf('openFiles'),
    // The system does not count those of root.
    processes: process.getuid?.() === 0 ? { soft: undefined, hard: undefined } : limitsOf('processes'),
    cgroupPids: cgroupPids(),
  }
}

/** Whether the limits of the system hold the cameras and clients of the settings. */
export function checkLimits(config: PipelineConfig, limits: SystemLimits = systemLimits()): Finding[] {
  const wanted = needs(config)
  const findings: Finding[] = []
  const { soft } = limits.openFiles
  if (soft !== undefined && soft < wanted.openFiles)
    findings.push({
      subject: 'open files',
      state: 'warning',
      detail: `a process may open ${soft} files, and some ${wanted.openFiles} are needed for these cameras and clients`,
      fix: `LimitNOFILE=${roomy(wanted.openFiles)} in the systemd unit, ulimits: { nofile: ${roomy(wanted.openFiles)} } in Compose, or ulimit -n ${roomy(wanted.openFiles)}`,
    })
  const user = limits.processes.soft ?? Number.POSITIVE_INFINITY
  const group = limits.cgroupPids ?? Number.POSITIVE_INFINITY
  const most = Math.min(user, group)
  if (most < wanted.threads)
    findings.push({
      subject: 'processes',
      state: 'warning',
      detail: `${most} processes and threads are allowed, and some ${wanted.threads} are needed for these cameras`,
      fix:
        group < user
          ? `TasksMax=${roomy(wanted.threads)} in the systemd unit, or pids_limit: ${roomy(wanted.threads)} in Compose`
          : `LimitNPROC=${roomy(wanted.threads)} in the systemd unit, ulimits: { nproc: ${roomy(wanted.threads)} } in Compose, or ulimit -u ${roomy(wanted.threads)}`,
    })
  if (findings.length > 0) return findings
  const shown = (limit: number) => (Number.isFinite(limit) ? String(limit) : 'unlimited')
  const detail = `${shown(soft ?? Number.POSITIVE_INFINITY)} open files a process, ${shown(most)} processes: enough for these settings`
  return [{ subject: 'limits', state: 'ok', detail }]
}

/** Open files of the process that has most, and threads of all. */
function needs(config: PipelineConfig): Readonly<{ openFiles: number; threads: number }> {
  const { cameras, engines, inference, server } = config
  const decoded = cameras
    .filter(({ enabled }) => enabled)
    .map(analysedUrl)
    .filter((url) => !url.startsWith('push:'))
  const http = decoded.filter((url) => /^https?:/i.test(url)).length
  const each = Math.ceil(decoded.length / Math.max(1, engines))
  const starting = Math.min(each, connectsAtOnce(config)) * files.starting
  const engine = each * files.camera + Math.ceil(http / Math.max(1, engines)) * files.httpCamera + starting
  const instances = inference.instances ?? availableParallelism()
  return {
    openFiles: files.process + Math.max(engine, server.maxStreamClients),
    threads: threads.service + engines * (threads.engine + instances) + decoded.length * threads.camera,
  }
}

/** With room for cameras that are added. */
function roomy(needed: number): number {
  return 2 ** Math.ceil(Math.log2(2 * needed))
}

/** Of either version of control groups; undefined for none. */
function cgroupPids(): number | undefined {
  try {
    const groups = readFileSync('/proc/self/cgroup', 'utf8')
    const first = /^\d+:pids:(.*)$/m.exec(groups)?.[1]
    const path = first === undefined ? (/^0::(.*)$/m.exec(groups)?.[1] ?? '/') : `pids${first}`
    const limit = Number(readFileSync(join('/sys/fs/cgroup', path, 'pids.max'), 'utf8'))
    return Number.isFinite(limit) ? limit : undefined
  } catch {
    return undefined
  }
}
