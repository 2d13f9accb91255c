import type { ModelServer } from '../../serving/model-server.js'
import type { Message } from '../../kserve/grpc-schema.js'
import { noCudaMemory, noCudaRegion, regionJson, sharedMemoryOf } from '../kserve/shared-memory-body.js'

/** Shared memory of clients on this machine; none on a GPU. */
export function sharedMemoryMethods(
  server: ModelServer,
): Readonly<Record<string, (request: Message) => Message>> {
  return {
    SystemSharedMemoryStatus: (request) => {
      const regions = sharedMemoryOf(server).status(textOf(request, 'name')).map(regionJson)
      return { regions: Object.fromEntries(regions.map((region) => [region['name'], region])) }
    },
    SystemSharedMemoryRegister: (request) => {
      const [key, offset, byteSize] = [
        textOf(request, 'key'),
        Number(request['offset'] ?? 0),
        Number(request['byte_size'] ?? 0),
      ]
      sharedMemoryOf(server).register({ name: textOf(request, 'name'), key, offset, byteSize })
      return {}
    },
    SystemSharedMemoryUnregister: (request) => {
      sharedMemoryOf(server).unregister(textOf(request, 'name'))
      return {}
    },
    CudaSharedMemoryStatus: (request) => {
      sharedMemoryOf(server)
      if (textOf(request, 'name') !== '') throw noCudaRegion(textOf(request, 'name'))
      return { regions: {} }
    },
    CudaSharedMemoryRegister: (request) => {
      sharedMemoryOf(server)
      throw noCudaMemory(textOf(request, 'name'))
    },
    CudaSharedMemoryUnregister: () => {
      sharedMemoryOf(server)
      return {}
    },
  }
}

function textOf(message: Message, name: string): string {
  const value = message[name]
  return typeof value === 'string' ? value : ''
}
