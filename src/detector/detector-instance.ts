import { Instance } from '../runtime/instance.js'
import type { GroupInstance } from '../runtime/instances/slot.js'
import type { DetectorAnswer, DetectorJob, DetectorLoad, DetectorReady } from './detector-protocol.js'

/** Longest a thread is waited for that could not be loaded. */
const failedMs = 1_000
/** Longest one is waited for if nobody says how long. */
const closeMs = 10_000

/** A thread with a detector, seen from the loop that gives it frames. */
export class DetectorInstance implements GroupInstance<DetectorJob, DetectorAnswer> {
  readonly #instance: Instance<DetectorLoad, DetectorReady, DetectorJob, DetectorAnswer>

  private constructor(name: string, entry: string) {
    this.#instance = new Instance(name, entry)
  }

  /** @throws RemoteError, WorkerExitedError */
  static async start(
    name: string,
    entry: string,
    load: DetectorLoad,
  ): Promise<Readonly<{ instance: DetectorInstance; ready: DetectorReady }>> {
    const instance = new DetectorInstance(name, entry)
    try {
      return { instance, ready: await instance.#instance.load(load) }
    } catch (error) {
      await instance.close(failedMs)
      throw error
    }
  }

  get exited(): Promise<Error> {
    return this.#instance.exited
  }

  get thread(): number | undefined {
    return this.#instance.thread
  }

  /** The buffers of the frames move to the thread, whatever becomes of the run. @throws InferenceFailedError, WorkerExitedError */
  execute(job: DetectorJob): Promise<DetectorAnswer> {
    return this.#instance.run(
      job,
      job.frames.map(({ rgbHwc }) => rgbHwc),
    )
  }

  close(drainMs = closeMs): Promise<boolean> {
    return this.#instance.stop(drainMs)
  }
}
