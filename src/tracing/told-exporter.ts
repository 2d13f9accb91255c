import { ExportResultCode, type ExportResult } from '@opentelemetry/core'
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace'
import type { TracingTarget } from '../config/tracing.js'
import type { PlainLog } from '../lifecycle/thread-log.js'
import { exportFailure } from './export-failure.js'

/** Sends spans, and says in the log when they begin to arrive, when they are lost, and when they arrive again: once each. */
export class ToldExporter implements SpanExporter {
  #state: 'untold' | 'taken' | 'lost' = 'untold'
  #lost = 0

  constructor(
    readonly inner: SpanExporter,
    readonly target: TracingTarget,
    readonly log: PlainLog,
  ) {}

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.inner.export(spans, (result) => {
      if (result.code === ExportResultCode.SUCCESS) this.#taken()
      else this.#failed(result.error, spans.length)
      done(result)
    })
  }

  async forceFlush(): Promise<void> {
    await this.inner.forceFlush?.()
  }

  /** By the library's word. */
  readonly shutdown = (): Promise<void> => this.inner.shutdown()

  #taken(): void {
    const { endpoint } = this.target
    if (this.#state === 'lost') this.log.info({ endpoint, lost: this.#lost }, 'spans arrive again')
    if (this.#state === 'untold') this.log.info({ endpoint }, 'spans arrive')
    this.#state = 'taken'
    this.#lost = 0
  }

  #failed(error: unknown, spans: number): void {
    this.#lost += spans
    if (this.#state === 'lost') return
    this.#state = 'lost'
    const { reason, fix } = exportFailure(error, this.target)
    this.log.warn({ endpoint: this.target.endpoint, reason, fix }, 'spans do not arrive, they are lost')
  }
}
