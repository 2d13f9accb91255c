import type { ModelConfig } from '../repository/model-config.js'
import type { InferRequest, InferResponse, ParameterValue } from '../runtime/infer.js'
import type { ModelStatistics } from '../runtime/statistics.js'
import type { TensorSpec } from '../tensors/tensor.js'

export type ModelState = 'UNKNOWN' | 'READY' | 'UNAVAILABLE' | 'LOADING' | 'UNLOADING'

/** A line of the repository index. Models that were never loaded have no version and no state. */
export type IndexEntry = Readonly<{ name: string; version: string; state: ModelState | ''; reason: string }>

export type ModelMetadata = Readonly<{
  name: string
  /** Ready versions, in decimal, lowest first. */
  versions: readonly string[]
  platform: string
  inputs: readonly TensorSpec[]
  outputs: readonly TensorSpec[]
}>

export type LoadRequest = Readonly<{
  /** Replaces `config.pbtxt`: ModelConfig as JSON with the names of the schema. */
  config: string | undefined
  /** `<version>/<file name>` -> content; with these nothing is read from the repository, and `config` must be there. */
  files: ReadonlyMap<string, Uint8Array>
}>

/** What the protocols ask of the model server. Names and versions come as they were sent; versions are digits or empty. */
export interface ModelServer {
  readonly name: string
  readonly version: string
  readonly extensions: readonly string[]
  live(): boolean
  /**
   * Somebody wants a model, or with an empty name wants to know whether all serve: what nobody has wanted before is loaded, where
   * models are loaded so. Asked before the questions below; {@link infer} does so itself.
   *
   * @returns undefined where there is nothing to wait for; else what resolves when they serve or have a reason why not, with an
   * empty name after some seconds at the latest. It rejects with ServingError where the server stops before.
   */
  ask(name: string): Promise<void> | undefined
  /** Whether every model that is to be loaded is. */
  ready(): boolean
  /** @throws ServingError for names that were never known and versions that are no number, and from a server that stops */
  modelReady(name: string, version: string): boolean
  /** @throws ServingError */
  metadata(name: string, version: string): ModelMetadata
  /** @throws ServingError */
  config(name: string, version: string): ModelConfig
  /** All models without a name. @throws ServingError */
  statistics(name: string, version: string): readonly ModelStatistics[]
  index(readyOnly: boolean): readonly IndexEntry[]
  /** Resolves when the model serves. @throws ServingError; what served before goes on serving */
  load(name: string, request: LoadRequest): Promise<void>
  /** @throws ServingError */
  unload(name: string, unloadDependents: boolean): Promise<void>
  /** @throws ServingError */
  infer(request: InferRequest): Promise<InferResponse>
  /** `nv_*` and histograms, in Prometheus text format. */
  metrics(): Promise<string>
  settings: ModelServerSettings
  /** `undefined`: off. */
  readonly sharedMemory: SharedMemory | undefined
}

/** A region of shared memory: `byteSize` bytes from `offset` on of the object that `shm_open` opens by `key`. */
export type SharedMemoryRegion = Readonly<{ name: string; key: string; offset: number; byteSize: number }>

/** Shared memory of clients on this machine, for tensors. */
export interface SharedMemory {
  /** @throws ServingError for what cannot be opened, is too small, or has a name that is taken */
  register(region: SharedMemoryRegion): void
  /** Of all without a name. */
  unregister(name: string): void
  /** Of all without a name. @throws ServingError for a name that is not registered */
  status(name: string): readonly SharedMemoryRegion[]
}

/** Trace and log settings that a client may read and change. */
export interface ModelServerSettings {
  /** For the server, or for one model, whose settings start as the server's. */
  trace(model: string): Readonly<Record<string, readonly string[]>>
  /** `undefined` sets a value back. @throws ServingError for names or values that are not known */
  setTrace(model: string, changes: Readonly<Record<string, readonly string[] | undefined>>): void
  log(): Readonly<Record<string, ParameterValue>>
  /** @throws ServingError; `log_file` cannot be changed */
  setLog(changes: Readonly<Record<string, ParameterValue>>): void
}
