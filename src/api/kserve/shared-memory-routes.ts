import type { ModelServer } from '../../serving/model-server.js'
import { type AddRoute, emptyJson } from './kserve-route.js'
import { noCudaMemory, noCudaRegion, regionJson, regionOfBody, sharedMemoryOf } from './shared-memory-body.js'

/** Shared memory of clients on this machine; none on a GPU. */
export function sharedMemoryRoutes(add: AddRoute, server: ModelServer): void {
  const ofSystem = (path: string): void => {
    add(`${path}/status`, {
      GET: ({ region }) => sharedMemoryOf(server).status(region).map(regionJson),
    })
    add(`${path}/register`, {
      POST: async ({ region, body, reply }) => {
        sharedMemoryOf(server).register(regionOfBody(region, await body()))
        return emptyJson(reply)
      },
    })
    add(`${path}/unregister`, {
      POST: ({ region, reply }) => {
        sharedMemoryOf(server).unregister(region)
        return emptyJson(reply)
      },
    })
  }
  // Clients unregister all of it before they use any other.
  const ofCuda = (path: string): void => {
    add(`${path}/status`, {
      GET: ({ region }) => {
        sharedMemoryOf(server)
        if (region !== '') throw noCudaRegion(region)
        return []
      },
    })
    add(`${path}/register`, {
      POST: ({ region }) => {
        sharedMemoryOf(server)
        throw noCudaMemory(region)
      },
    })
    add(`${path}/unregister`, {
      POST: ({ reply }) => {
        sharedMemoryOf(server)
        return emptyJson(reply)
      },
    })
  }
  for (const region of ['', '/region/:region']) {
    ofSystem(`/v2/systemsharedmemory${region}`)
    ofCuda(`/v2/cudasharedmemory${region}`)
  }
}
