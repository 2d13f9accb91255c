import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { until } from '../support/until.js'
import type { ControlPlane } from './control-plane.js'

const columns = [
  '{.type}',
  '{.object.metadata.name}',
  '{.object.metadata.deletionTimestamp}',
  '{.object.status.conditions[?(@.type=="Ready")].status}',
]

/** Every change of the pods of a release, as the API server tells it: how many are ready, and were at the least. */
class ReadyWatch {
  readonly #ready = new Map<string, boolean>()
  readonly #child: ChildProcess
  fewest = Number.POSITIVE_INFINITY

  constructor(plane: ControlPlane, namespace: string, release: string) {
    const selector = `app.kubernetes.io/instance=${release}`
    const form = `jsonpath=${columns.join('{"|"}')}{"\\n"}`
    const watch = ['--watch', '--output-watch-events', '-o', form]
    const args = ['-n', namespace, 'get', 'pods', '-l', selector, ...watch]
    this.#child = spawn(plane.program('kubectl'), args, {
      env: plane.env,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    createInterface({ input: this.#child.stdout! }).on('line', (line) => this.#take(line))
  }

  #take(line: string): void {
    const [type, name = '', deleted, ready] = line.split('|')
    if (type === 'DELETED') this.#ready.delete(name)
    else this.#ready.set(name, deleted === '' && ready === 'True')
    this.fewest = Math.min(this.fewest, this.ready)
  }

  get ready(): number {
    return [...this.#ready.values()].filter(Boolean).length
  }

  async end(): Promise<void> {
    const closed = once(this.#child, 'close')
    this.#child.kill('SIGKILL')
    await closed
  }
}

/**
 * Fewest pods of a release that were ready at any time while something was done, up to when all are ready again.
 *
 * @param count - of pods that are ready before and after.
 */
export async function fewestReady(
  plane: ControlPlane,
  { namespace, release, count }: Readonly<{ namespace: string; release: string; count: number }>,
  done: () => Promise<unknown>,
): Promise<number> {
  const watch = new ReadyWatch(plane, namespace, release)
  try {
    await until('the pods before', () => watch.ready === count, 60_000)
    watch.fewest = count
    await done()
    await until('the pods after', () => watch.ready === count, 120_000)
    return watch.fewest
  } finally {
    await watch.end()
  }
}
