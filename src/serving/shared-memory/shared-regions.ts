import type { SharedPlace } from '../../runtime/infer.js'
import { ServingError } from '../../tensors/serving-error.js'
import type { SharedMemory, SharedMemoryRegion } from '../model-server.js'
import { SharedRegion } from './shared-region.js'

/** Each holds a descriptor. */
const mostRegions = 1_024
const mostNameBytes = 1_024

/** Shared memory that clients of this machine have registered. It lasts until they take it back, or the process ends. */
export class SharedRegions implements SharedMemory {
  readonly #regions = new Map<string, SharedRegion>()

  register(entry: SharedMemoryRegion): void {
    const { name } = entry
    if (name === '')
      throw new ServingError(
        'INVALID_ARG',
        "'region name' is necessary to register system shared memory region",
      )
    if (Buffer.byteLength(name) > mostNameBytes)
      throw new ServingError(
        'INVALID_ARG',
        `the name of a shared memory region has ${mostNameBytes} bytes at most`,
      )
    if (this.#regions.has(name))
      throw new ServingError('ALREADY_EXISTS', `shared memory region '${name}' already in manager`)
    if (this.#regions.size >= mostRegions)
      throw new ServingError('UNAVAILABLE', `there are ${mostRegions} shared memory regions already`)
    this.#regions.set(name, SharedRegion.open(entry))
  }

  /** Requests that use a region end as they would have. A name that is not registered is nothing to complain of, as with Triton. */
  unregister(name: string): void {
    const names = name === '' ? [...this.#regions.keys()] : [name]
    for (const each of names) {
      this.#regions.get(each)?.release()
      this.#regions.delete(each)
    }
  }

  status(name: string): readonly SharedMemoryRegion[] {
    if (name === '') return [...this.#regions.values()].map(({ entry }) => entry)
    const region = this.#regions.get(name)
    if (region === undefined)
      throw new ServingError('NOT_FOUND', `Unable to find system shared memory region: '${name}'`)
    return [region.entry]
  }

  /** The region of a place, which lies within it. @throws ServingError */
  at(place: SharedPlace): SharedRegion {
    const region = this.#regions.get(place.region)
    if (region === undefined)
      throw new ServingError('NOT_FOUND', `Unable to find shared memory region: '${place.region}'`)
    region.check(place)
    return region
  }
}
