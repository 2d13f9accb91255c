import type { Arrival } from '../infer.js'
import type { RequestSpans } from './request-spans.js'
import { RequestTrace } from './request-trace.js'
import type { TraceFiles } from './trace-files.js'
import { TraceScope } from './trace-scope.js'
import {
  checkTraceable,
  checkTraceChanges,
  traceDefaults,
  type TraceChanges,
  type TraceSettings,
  withChanges,
} from './trace-settings.js'

/** A trace, and what is to be called when the request is answered. */
export type BegunTrace = Readonly<{ trace: RequestTrace; done: () => void }>

/**
 * Traces of requests: in files as the settings ask for them that clients can change, and as spans where the service's own settings say so.
 * Neither changes which requests the other one takes.
 *
 * Files: Settings of a model follow the server's until they are set for the model. A
 * change writes what was collected under the settings before, and counts anew.
 */
export class Tracer {
  #ownServer: TraceSettings = {}
  readonly #ownOfModels = new Map<string, TraceSettings>()
  #server: TraceScope
  readonly #models = new Map<string, TraceScope>()
  #lastId = 0

  /**
   * @param files - `undefined`: no traces are written, and none can be asked for.
   * @param spans - `undefined`: none are sent.
   */
  constructor(
    readonly files?: TraceFiles,
    readonly spans?: RequestSpans,
  ) {
    this.#server = this.#scope('')
  }

  settings(model: string): TraceSettings {
    const { settings, left } = this.#models.get(model) ?? this.#server
    return { ...settings, trace_count: [String(left)] }
  }

  /** @param model - empty: the server. @throws ServingError; then nothing has changed */
  change(model: string, changes: TraceChanges): void {
    checkTraceChanges(changes)
    const before = model === '' ? this.#ownServer : (this.#ownOfModels.get(model) ?? {})
    const own = withChanges(before, changes)
    checkTraceable(
      { ...traceDefaults, ...(model === '' ? {} : this.#ownServer), ...own },
      this.files !== undefined,
    )
    if (model !== '') return this.#changeModel(model, own)
    this.#ownServer = own
    this.#server.close()
    this.#server = this.#scope('')
    for (const [name, settings] of [...this.#ownOfModels]) this.#changeModel(name, settings)
  }

  /** `undefined` for a request that is not traced. */
  begin(model: string, version: string, requestId: string, arrival?: Arrival): BegunTrace | undefined {
    const scope = this.#models.get(model) ?? this.#server
    const isForFile = scope.sample()
    const endSpan = this.spans?.begin(arrival)
    if (!isForFile && endSpan === undefined) return undefined
    const nextId = () => ++this.#lastId
    const trace = new RequestTrace({ id: nextId(), model, version, requestId, parentId: 0 }, nextId)
    const done = () => {
      if (isForFile) scope.add(trace)
      endSpan?.(trace)
    }
    return { trace, done }
  }

  /** Writes what is left. Never rejects. */
  async close(): Promise<void> {
    for (const scope of [this.#server, ...this.#models.values()]) scope.close()
    await this.files?.written()
  }

  #changeModel(model: string, own: TraceSettings): void {
    this.#models.get(model)?.close()
    if (Object.keys(own).length === 0) {
      this.#ownOfModels.delete(model)
      this.#models.delete(model)
      return
    }
    this.#ownOfModels.set(model, own)
    this.#models.set(model, this.#scope(model))
  }

  #scope(model: string): TraceScope {
    const settings = {
      ...traceDefaults,
      trace_file: [this.files?.name ?? ''],
      ...this.#ownServer,
      ...this.#ownOfModels.get(model),
    }
    return new TraceScope(settings, (entries) => this.files?.save(entries))
  }
}
