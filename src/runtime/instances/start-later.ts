import { delay } from '../../lifecycle/delay.js'
import { growingWaitMs } from '../../lifecycle/growing-tries.js'
import type { Log } from '../../lifecycle/log.js'

export type StartLaterOptions = Readonly<{
  /** Of the instance, for people. */
  instance: string
  log: Log
  /** Ends the waiting. */
  stopped: AbortSignal
  start: () => Promise<unknown>
  /** It is up. */
  onIdle: () => void
  /** Until the first try; the next waits are {@link growingWaitMs}. */
  firstMs?: number
}>

/** Starts an instance for which a GPU has no room beside the others of its model, once it has: told once, tried ever more rarely. Never rejects. */
export async function startLater(
  refused: unknown,
  { instance, log, stopped, start, onIdle, firstMs = 30_000 }: StartLaterOptions,
): Promise<void> {
  if (stopped.aborted) return
  log.warn({ instance, err: refused }, 'instance cannot be started now, the others work: it is tried again')
  for (let tries = 0; ; tries += 1) {
    if (!(await delay(growingWaitMs(firstMs, tries), stopped))) return
    try {
      await start()
      log.info({ instance }, 'instance works, too')
      onIdle()
      return
    } catch (error) {
      log.debug({ instance, err: error }, 'instance still cannot be started')
    }
  }
}
