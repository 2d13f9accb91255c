import type { LoadRequest } from '../../serving/model-server.js'
import { ServingError } from '../../tensors/serving-error.js'
import { asObject, member, parseJson, type JsonObject } from './json.js'

/** The JSON object of a body; an empty body is an empty object. @throws ServingError */
export function objectBody(body: Uint8Array): JsonObject {
  return body.byteLength === 0 ? {} : (asObject(parseJson(body)) ?? {})
}

/** `ready` of an index request. @throws ServingError */
export function readyOnly(body: Uint8Array): boolean {
  const ready = member(objectBody(body), 'ready') ?? false
  if (typeof ready === 'boolean') return ready
  throw new ServingError('INVALID_ARG', "Invalid value for 'ready': expected a boolean")
}

/** `config` and `file:<version>/<name>` of a load request; the content of a file is base64. @throws ServingError */
export function loadRequest(body: Uint8Array): LoadRequest {
  let config: string | undefined
  const files = new Map<string, Uint8Array>()
  for (const [name, value] of Object.entries(asObject(member(objectBody(body), 'parameters')) ?? {})) {
    if (typeof value !== 'string')
      throw new ServingError(
        'INVALID_ARG',
        `attempt to access JSON non-string as string: parameter '${name}'`,
      )
    if (name === 'config') config = value
    else if (name.startsWith('file:')) files.set(name.slice('file:'.length), decoded(name, value))
    else throw new ServingError('INTERNAL', 'unexpected error on creating Triton parameter')
  }
  return { config, files }
}

function decoded(name: string, base64: string): Uint8Array {
  if (/^[A-Za-z0-9+/\s]*(?:=\s*){0,2}$/.test(base64)) return Buffer.from(base64, 'base64')
  throw new ServingError('INVALID_ARG', `Unable to decode base64 data for '${name}'`)
}

/** `unload_dependents` of an unload request. @throws ServingError */
export function unloadDependents(body: Uint8Array): boolean {
  const value = member(asObject(member(objectBody(body), 'parameters')), 'unload_dependents') ?? false
  if (typeof value === 'boolean') return value
  throw new ServingError(
    'INVALID_ARG',
    "Unable to parse 'unload_dependents': attempt to access JSON non-boolean as boolean",
  )
}
