import { spawn } from 'node:child_process'
import { type ErrorRecord, InternalError } from '../../errors.js'
import { withDeathSignal } from '../../lifecycle/death-signal.js'
import { entryPath } from '../../lifecycle/entry.js'
import { byTrueName } from '../../lifecycle/system-limit.js'
import type { LevelResult } from '../perf/measure-level.js'
import type { TrialAnswer, TrialTask } from './trial-task.js'

/** What a trial came to. */
export type TrialResult =
  | Readonly<{ ok: true; levels: readonly LevelResult[]; peakBytes: number; loadMs: number }>
  /** The configuration cannot be used: the model does not open, runs fail, or its process dies. */
  | Readonly<{ ok: false; error: ErrorRecord }>

/** Longest for the load of a model, and for what is between the levels. */
const patienceMs = 180_000

/**
 * Measures a model in a process of its own.
 *
 * @param signal - ends the process at once.
 * @throws AbortError after the signal; SystemLimitError where there can be no process
 */
export async function runTrial(task: TrialTask, signal: AbortSignal): Promise<TrialResult> {
  signal.throwIfAborted()
  const [command, args] = withDeathSignal(process.execPath, [entryPath(import.meta.url, './trial-main.js')])
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] })
  const levels = task.load.kind === 'concurrency' ? task.load.levels.length : 1
  const atMostMs = patienceMs + levels * (task.mostWindows + 1) * task.windowMs
  let why: string | undefined
  const end = (reason: string): void => {
    why ??= reason
    child.kill('SIGKILL')
  }
  const timer = setTimeout(() => end(`it was not done within ${Math.round(atMostMs / 1e3)} s`), atMostMs)
  const cut = (): void => end('it was ended')
  signal.addEventListener('abort', cut)
  try {
    const { out, complaints, ending } = await new Promise<Ended>((resolve, reject) => {
      let out = ''
      let complaints = ''
      child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
      child.stderr
        .setEncoding('utf8')
        .on('data', (text: string) => (complaints = (complaints + text).slice(-2_000)))
      child.once('error', (error) => reject(byTrueName('a trial cannot be started', error)))
      child.once('close', (code, killed) =>
        resolve({ out, complaints, ending: killed ?? `exit code ${code ?? 'unknown'}` }),
      )
      // It may have ended before it read.
      child.stdin.on('error', () => undefined).end(JSON.stringify(task))
    })
    signal.throwIfAborted()
    return resultOf(answersIn(out), why ?? `its process ended with ${ending}: ${lastLine(complaints)}`)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', cut)
  }
}

type Ended = Readonly<{ out: string; complaints: string; ending: string }>

/** The last line may be half a one. */
function answersIn(out: string): readonly TrialAnswer[] {
  const lines = out.split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as TrialAnswer)
}

function resultOf(answers: readonly TrialAnswer[], ending: string): TrialResult {
  const failed = answers.find(({ kind }) => kind === 'failed')
  if (failed?.kind === 'failed') return { ok: false, error: failed.error }
  const done = answers.find(({ kind }) => kind === 'done')
  if (done?.kind !== 'done') {
    const { code, hint } = new InternalError(ending)
    return { ok: false, error: { code, message: ending, hint } }
  }
  const loaded = answers.find(({ kind }) => kind === 'loaded')
  return {
    ok: true,
    levels: answers.flatMap((each) => (each.kind === 'level' ? [each.result] : [])),
    peakBytes: done.peakBytes,
    loadMs: loaded?.kind === 'loaded' ? loaded.loadMs : 0,
  }
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? ''
}
