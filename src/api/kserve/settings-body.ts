import type { ParameterValue } from '../../runtime/infer.js'
import type { ModelServer } from '../../serving/model-server.js'
import { ServingError } from '../../tensors/serving-error.js'
import { member, type JsonObject } from './json.js'
import { objectBody } from './repository-body.js'

type TraceValues = Readonly<Record<string, readonly string[] | undefined>>

/**
 * Only a model that serves has trace settings; the empty name is the server.
 *
 * @throws ServingError in Triton's words for it
 */
export function checkTraced(server: ModelServer, model: string): void {
  if (model === '' || isServed(server, model)) return
  throw new ServingError('INVALID_ARG', `Request for unknown model : ${model}`)
}

function isServed(server: ModelServer, model: string): boolean {
  try {
    return server.modelReady(model, '')
  } catch (error) {
    // A name that was never known.
    if (error instanceof ServingError && error.status === 'INVALID_ARG') return false
    throw error
  }
}

/** Changes of trace settings; `null` sets one back. Clients send single values as text or as a list. @throws ServingError */
export function traceChanges(body: Uint8Array): TraceValues {
  return Object.fromEntries(
    Object.entries(objectBody(body)).map(([name, value]) => [name, traceValue(name, value)]),
  )
}

function traceValue(name: string, value: unknown): readonly string[] | undefined {
  if (value === null) return undefined
  const values: readonly unknown[] = Array.isArray(value) ? value : [value]
  return values.map((item) => {
    if (typeof item === 'string') return item
    throw new ServingError(
      'INVALID_ARG',
      `Unable to parse '${name}': attempt to access JSON non-string as string`,
    )
  })
}

/** `trace_level` is a list, every other setting a text. */
export function traceJson(settings: Readonly<Record<string, readonly string[]>>): JsonObject {
  return Object.fromEntries(
    Object.entries(settings).map(([name, values]) => [
      name,
      name === 'trace_level' ? values : (values[0] ?? ''),
    ]),
  )
}

/** Changes of log settings; `null` leaves one as it is. @throws ServingError */
export function logChanges(body: Uint8Array): Readonly<Record<string, ParameterValue>> {
  const changes: Record<string, ParameterValue> = {}
  const json = objectBody(body)
  for (const name of Object.keys(json)) {
    const value = member(json, name)
    if (value === null) continue
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')
      throw new ServingError('INVALID_ARG', `invalid value for '${name}'`)
    changes[name] = value
  }
  return changes
}
