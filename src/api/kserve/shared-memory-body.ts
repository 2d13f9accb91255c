import type { SharedPlace } from '../../runtime/infer.js'
import type { ModelServer, SharedMemory, SharedMemoryRegion } from '../../serving/model-server.js'
import { usesSharedMemory } from '../../serving/shared-memory/shared-tensors.js'
import type { SentRequest } from '../../runtime/infer.js'
import { ServingError } from '../../tensors/serving-error.js'
import { member, type JsonObject } from './json.js'
import { objectBody } from './repository-body.js'

/** @throws ServingError where shared memory is off */
export function sharedMemoryOf({ sharedMemory }: ModelServer): SharedMemory {
  if (sharedMemory === undefined) throw noSharedMemory()
  return sharedMemory
}

/** @throws ServingError for tensors in shared memory where that is off */
export function checkShared(server: ModelServer, request: SentRequest): void {
  if (server.sharedMemory === undefined && usesSharedMemory(request)) throw noSharedMemory()
}

function noSharedMemory(): ServingError {
  return new ServingError(
    'UNSUPPORTED',
    'shared memory is not supported by this server: modelServer.sharedMemory is off',
  )
}

/** No process of this project takes tensors on a GPU. */
export function noCudaMemory(name: string): ServingError {
  return new ServingError(
    'INVALID_ARG',
    `failed to register CUDA shared memory region: '${name}', CUDA shared memory is not supported by this server`,
  )
}

export function noCudaRegion(name: string): ServingError {
  return new ServingError('NOT_FOUND', `Unable to find cuda shared memory region: '${name}'`)
}

/** What a region is, as a client sends it. @throws ServingError */
export function regionOfBody(name: string, body: Uint8Array): SharedMemoryRegion {
  const json = objectBody(body)
  const key = required(json, 'key')
  if (typeof key !== 'string')
    throw new ServingError(
      'INVALID_ARG',
      "Unable to parse 'key': attempt to access JSON non-string as string",
    )
  const byteSize = sizeOf('byte_size', required(json, 'byte_size'))
  return { name, key, offset: sizeOf('offset', member(json, 'offset') ?? 0), byteSize }
}

export function regionJson({ name, key, offset, byteSize }: SharedMemoryRegion): JsonObject {
  return { name, key, offset, byte_size: byteSize }
}

/** Where a tensor lies, by its parameters; `undefined` where it is not in shared memory. @throws ServingError */
export function sharedPlaceOf(parameters: JsonObject | undefined): SharedPlace | undefined {
  const region = member(parameters, 'shared_memory_region')
  if (region === undefined) return undefined
  if (typeof region !== 'string')
    throw new ServingError(
      'INVALID_ARG',
      "Unable to parse 'shared_memory_region': attempt to access JSON non-string as string",
    )
  const size = (name: string): number => sizeOf(name, member(parameters, name) ?? 0)
  return { region, offset: size('shared_memory_offset'), bytes: size('shared_memory_byte_size') }
}

function required(json: JsonObject, name: string): unknown {
  const value = member(json, name)
  if (value === undefined)
    throw new ServingError('INVALID_ARG', `Shared memory register request has no '${name}' field`)
  return value
}

function sizeOf(name: string, value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw new ServingError(
    'INVALID_ARG',
    `Unable to parse '${name}': attempt to access JSON non-unsigned-integer as unsigned-integer`,
  )
}
