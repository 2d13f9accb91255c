import { Instance } from '../runtime/instance.js'
import type { SizeCost } from '../runtime/batch-sizes.js'
import type { GroupInstance, InstanceSizes } from '../runtime/instances/slot.js'
import { InternalError } from '../errors.js'
import type { DetectorAnswer, DetectorJob, DetectorLoad, DetectorReady } from './detector-protocol.js'

/** Longest a thread is waited for that could not be loaded. */
const failedMs = 1_000
/** Longest one is waited for if nobody says how long. */
const closeMs = 10_000

/** A thread with a detector, seen from the loop that gives it frames. */
export class DetectorInstance implements GroupInstance<DetectorJob, DetectorAnswer> {
  readonly #instance: Instance<DetectorLoad, DetectorReady, DetectorJob, DetectorAnswer>
  #sizes: InstanceSizes | undefined

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
      const ready = await instance.#instance.load(load)
      const { sizes: all, sizeCosts: warm = [] } = ready
      instance.#sizes = all && { all, warm, run: (size) => instance.#warm(size) }
      return { instance, ready }
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

  get sizes(): InstanceSizes | undefined {
    return this.#sizes
  }

  /** The buffers of the frames move to the thread, whatever becomes of the run. @throws InferenceFailedError, WorkerExitedError */
  execute(job: DetectorJob): Promise<DetectorAnswer> {
    return this.#instance.run(
      job,
      job.frames.map(({ rgbHwc }) => rgbHwc),
    )
  }

  async #warm(size: number): Promise<SizeCost> {
    const { sizeCost } = await this.execute({ frames: [], warms: size })
    if (sizeCost === undefined) throw new InternalError('a detector that was to warm a size did not')
    return sizeCost
  }

  close(drainMs = closeMs): Promise<boolean> {
    return this.#instance.stop(drainMs)
  }
}
