import type { InferRequest, InferResponse, SentRequest, SharedPlace } from '../../runtime/infer.js'
import { isLongUnchecked } from '../../runtime/check-request.js'
import { ServingError } from '../../tensors/serving-error.js'
import { leastMovedBytes } from '../../tensors/tensor-buffers.js'
import { checkedTensor } from '../../tensors/tensor-check.js'
import type { Tensor } from '../../tensors/tensor.js'
import type { SharedRegion } from './shared-region.js'
import type { SharedRegions } from './shared-regions.js'

/** Requests whose inputs are held at a time, each as large as one may be. */
const mostHeldRequests = 8
const noBytes = new Uint8Array(0)

/** Whether some of its tensors lie in shared memory, or are to. */
export function usesSharedMemory({ sharedInputs, outputs }: SentRequest): boolean {
  return sharedInputs !== undefined || outputs.some(({ place }) => place !== undefined)
}

type Output = Readonly<{ place: SharedPlace; region: SharedRegion }>

/** Moves tensors of requests and answers between the shared memory of clients and the server: one copy each way. */
export class SharedTensors {
  #heldBytes = 0

  /** @param maxRequestBytes - most bytes of all inputs of a request that lie in shared memory. */
  constructor(
    readonly regions: SharedRegions,
    readonly maxRequestBytes: number,
  ) {}

  /**
   * Answers a request some of whose tensors lie in shared memory.
   *
   * @param answer - gets the request with all its inputs.
   * @returns the answer, without the data of outputs that are in shared memory then.
   * @throws ServingError, and what `answer` rejects with
   */
  async around(
    request: InferRequest,
    answer: (request: InferRequest) => Promise<InferResponse>,
  ): Promise<InferResponse> {
    // Before anything is read or runs: a region may be taken back meanwhile.
    const outputs = this.#outputsOf(request)
    const bytes = this.#bytesOf(request)
    this.#heldBytes += bytes
    try {
      const response = await answer(await this.#withInputs(request))
      return outputs.size === 0 ? response : await written(response, outputs)
    } finally {
      this.#heldBytes -= bytes
      for (const { region } of outputs.values()) region.leave()
    }
  }

  #outputsOf({ outputs }: InferRequest): ReadonlyMap<string, Output> {
    const found = new Map<string, Output>()
    for (const { name, place } of outputs)
      if (place !== undefined) found.set(name, { place, region: this.regions.at(place) })
    for (const { region } of found.values()) region.enter()
    return found
  }

  /** Small requests can name much memory, so what they name is counted as if it had been sent. */
  #bytesOf({ sharedInputs }: InferRequest): number {
    const bytes = [...(sharedInputs?.values() ?? [])].reduce(
      (sum, place) => sum + Math.max(0, place.bytes),
      0,
    )
    if (bytes > this.maxRequestBytes)
      throw new ServingError(
        'INVALID_ARG',
        `inputs of the request have ${bytes} bytes in shared memory, more than the ${this.maxRequestBytes} of a request (modelServer.maxRequestBytes)`,
      )
    if (this.#heldBytes > 0 && this.#heldBytes + bytes > mostHeldRequests * this.maxRequestBytes)
      throw new ServingError('UNAVAILABLE', 'too many bytes of shared memory are being read, try again')
    return bytes
  }

  async #withInputs({ sharedInputs, ...request }: InferRequest): Promise<InferRequest> {
    if (sharedInputs === undefined) return request
    const inputs = await Promise.all(
      request.inputs.map(async (tensor, index) => {
        const place = sharedInputs.get(index)
        if (place === undefined) return tensor
        const data = await this.regions.at(place).read(place)
        return checked(
          { ...tensor, data, ...(data.byteLength >= leastMovedBytes ? { movable: true } : {}) },
          request,
        )
      }),
    )
    return { ...request, inputs }
  }
}

/** Many elements of BYTES are looked at later, in turns with what else the loop does. */
function checked(tensor: Tensor, { model, id }: InferRequest): Tensor {
  return isLongUnchecked(tensor) ? tensor : checkedTensor(tensor, model, id)
}

async function written(response: InferResponse, places: ReadonlyMap<string, Output>): Promise<InferResponse> {
  const outputs = await Promise.all(
    response.outputs.map(async (tensor) => {
      const output = places.get(tensor.name)
      if (output === undefined) return tensor
      const { place, region } = output
      const { byteLength } = tensor.data
      if (byteLength > place.bytes)
        throw new ServingError(
          'INTERNAL',
          `shared memory size specified with the request for output '${tensor.name}' (${place.bytes} bytes) should be at least ${byteLength} bytes to hold the results`,
        )
      await region.write(place, tensor.data)
      return { ...tensor, data: noBytes }
    }),
  )
  return { ...response, outputs, inSharedMemory: new Set(places.keys()) }
}
