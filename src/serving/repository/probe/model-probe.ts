import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { ModelInvalidError } from '../../../repository/errors.js'
import { withDeathSignal } from '../../../lifecycle/death-signal.js'
import { entryPath } from '../../../lifecycle/entry.js'
import {
  byTrueName,
  shortage,
  systemLimitIn,
  SystemLimitError,
  type SystemLimit,
} from '../../../lifecycle/system-limit.js'
import { begun, type ProbeAnswer, type ProbeTask } from './probe-protocol.js'

export type ProbeLimits = Readonly<{
  memoryBytes: number
  /** Besides a second for each 100 MB of the model. */
  cpuSeconds: number
}>

/** Address space that the process takes without a model: code, heaps and stacks that are mostly never touched. */
const ownAddressSpaceBytes = 3 * 1024 ** 3
/** Processor time is what counts; a machine that has none to give must not wait for ever. */
const wallSecondsPerCpuSecond = 6
const watchMs = 20
const stopping = 'the service stops'
const pageBytes = 4096
const maxAnswerBytes = 64 * 1024

const prlimit = ['/usr/bin/prlimit', '/bin/prlimit'].find((path) => existsSync(path))

/**
 * Loads and runs a model once in a process of its own with limits, so that a file made to do harm does it there.
 *
 * @param signal - ends the process, and the model is refused.
 * @throws ModelInvalidError `GANTRY_MODEL_INVALID` when it cannot be loaded, or takes more than the limits;
 *   SystemLimitError when it could not be tried, which says nothing of the model.
 */
export async function probeModel(task: ProbeTask, limits: ProbeLimits, signal: AbortSignal): Promise<void> {
  const cpuSeconds = limits.cpuSeconds + Math.ceil(sizeOf(task) / 1e8)
  const ended = await run(task, limits, cpuSeconds, signal)
  const { answer } = ended
  const limit = limitOf(ended)
  if (limit !== undefined) throw new SystemLimitError(untried(task), limit)
  if (answer?.loaded === false)
    throw refused(
      task,
      outOfMemory(answer.error) ? needsMemory(limits) : `ONNX Runtime cannot load it: ${line(answer.error)}`,
    )
  if (answer?.runError !== undefined && outOfMemory(answer.runError)) throw refused(task, needsMemory(limits))
  if (answer === undefined) throw refused(task, ended.why ?? died(ended, limits, cpuSeconds))
}

function sizeOf(task: ProbeTask): number {
  try {
    return statSync(task.modelPath).size
  } catch (error) {
    throw byTrueName(untried(task), error)
  }
}

function untried({ modelPath }: ProbeTask): string {
  return `${modelPath} cannot be tried`
}

/** What kept the model from being tried; undefined where it was, and what the process has to say is of the model. */
function limitOf({ begun: hasBegun, answer, why, stderr, signal, code }: Ended): SystemLimit | undefined {
  if (why === stopping) return undefined
  if (!hasBegun) return systemLimitIn(stderr) ?? shortage() ?? unbegun(why ?? endedBy(signal, code))
  const said = answer === undefined ? stderr : answer.loaded ? answer.runError : answer.error
  const limit = systemLimitIn(said ?? '')
  // Memory is what it may not take of it.
  return limit?.code === 'ENOMEM' ? undefined : limit
}

/** Without threads Node dies, or waits for ever, before it runs anything, and says nothing of the reason. */
function unbegun(why: string): SystemLimit {
  return {
    code: 'EAGAIN',
    reason: `the process that tries it did not come up (${why})`,
    hint: 'Look at the limits of processes, memory and open files of the service or container.',
  }
}

type Ended = Readonly<{
  /** It came as far as the model. */
  begun: boolean
  answer: ProbeAnswer | undefined
  signal: NodeJS.Signals | null
  code: number | null
  /** Set when we ended it. */
  why: string | undefined
  stderr: string
}>

function run(
  task: ProbeTask,
  { memoryBytes }: ProbeLimits,
  cpuSeconds: number,
  signal: AbortSignal,
): Promise<Ended> {
  const child = start(task, memoryBytes + ownAddressSpaceBytes, cpuSeconds)
  let why: string | undefined
  const end = (reason: string): void => {
    why ??= reason
    child.kill('SIGKILL')
  }
  const watch = setInterval(() => {
    if (residentBytes(child.pid) > memoryBytes) end(needsMemory({ memoryBytes }))
  }, watchMs)
  const wallMs = cpuSeconds * wallSecondsPerCpuSecond * 1_000
  const timer = setTimeout(() => end(needsTime(cpuSeconds)), wallMs)
  const cut = (): void => end(stopping)
  signal.addEventListener('abort', cut)
  if (signal.aborted) cut()
  return new Promise((resolve, reject) => {
    let stdout = ''
    let stderr = ''
    child.stdout
      ?.setEncoding('utf8')
      .on('data', (text: string) => (stdout = (stdout + text).slice(0, maxAnswerBytes)))
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-2_000)))
    const settle = (): void => {
      clearInterval(watch)
      clearTimeout(timer)
      signal.removeEventListener('abort', cut)
    }
    child.once('error', (error) => {
      settle()
      // It says nothing of the model, which is tried again.
      reject(byTrueName(untried(task), error))
    })
    child.once('close', (code, signal) => {
      settle()
      const [first, second = ''] = stdout.split('\n')
      resolve({ begun: first === begun, answer: parsed(second), signal, code, why, stderr })
    })
  })
}

function start(task: ProbeTask, addressSpaceBytes: number, cpuSeconds: number): ChildProcess {
  const node = [process.execPath, entryPath(import.meta.url, './probe-main.js'), JSON.stringify(task)]
  const limited =
    prlimit === undefined
      ? node
      : [
          prlimit,
          `--as=${addressSpaceBytes}`,
          `--cpu=${cpuSeconds}:${cpuSeconds + 1}`,
          '--core=0',
          '--',
          ...node,
        ]
  const [command, args] = withDeathSignal(limited[0] ?? '', limited.slice(1))
  return spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], cwd: tmpdir(), env: {} })
}

/** 0 where the system does not tell. */
function residentBytes(pid: number | undefined): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * pageBytes
  } catch {
    return 0
  }
}

function parsed(line: string): ProbeAnswer | undefined {
  try {
    return JSON.parse(line) as ProbeAnswer
  } catch {
    return undefined
  }
}

function died({ signal, code, stderr }: Ended, limits: ProbeLimits, cpuSeconds: number): string {
  if (signal === 'SIGXCPU') return needsTime(cpuSeconds)
  if (outOfMemory(stderr)) return needsMemory(limits)
  // A shell of prlimit's kind tells a signal as 128 and its number; processor time ends with SIGKILL where SIGXCPU is ignored.
  return `the process that tried it ended with ${endedBy(signal, code)}`
}

function endedBy(signal: NodeJS.Signals | null, code: number | null): string {
  return signal ?? `exit code ${code ?? 'unknown'}`
}

function outOfMemory(text: string): boolean {
  return /bad_alloc|failed to allocate|out of memory|Array buffer allocation failed/i.test(text)
}

function needsMemory({ memoryBytes }: Pick<ProbeLimits, 'memoryBytes'>): string {
  return `one run of it takes more memory than the ${Math.round(memoryBytes / 1024 ** 2)} MiB it may have`
}

function needsTime(cpuSeconds: number): string {
  return `loading and one run of it take more than ${cpuSeconds} s of processor time`
}

/** ONNX Runtime's messages begin with the place in its source. */
function line(text: string): string {
  return (text.split('\n')[0] ?? '').replace(/^\/onnxruntime_src\/\S+ (.* was false\. )?/, '').trim()
}

function refused({ modelPath }: ProbeTask, why: string): ModelInvalidError {
  return new ModelInvalidError(
    `${modelPath} is refused: ${why}`,
    'Check where the model comes from and how it was exported; modelServer.probe has the limits.',
  )
}
