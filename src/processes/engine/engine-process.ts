import type { Service } from '../../lifecycle/service.js'
import { EngineUnavailableError } from '../../cameras/engine-errors.js'
import type { EngineAnswers, EngineQuestion, EngineSetup, FromEngine, ToEngine } from './protocol.js'
import type { DetectorInfo } from '../../detector/camera-detector.js'
import { entryPath } from '../../lifecycle/entry.js'
import type { Log } from '../../lifecycle/log.js'
import type { EngineHealth } from '../../api/gantry.js'
import { SupervisedProcess, type OwnMessage } from '../supervised-process.js'

/** Longest an engine may load its model. */
const loadAtMostMs = 120_000

/**
 * The heap of an engine is small and short-lived: helper threads that collect it cost more in waking up than they save, and take the
 * cores from the instances (test/bench/service-overhead.bench.ts).
 */
const v8Flags = ['--single-threaded-gc']

export type EngineEvents = Readonly<{
  /** A detector runs: cameras can be given to the engine. Called again after every restart. */
  ready(detector: DetectorInfo): void
  /** The engine is gone; whatever was in it is lost. */
  gone(reason: string): void
  message(message: OwnMessage<FromEngine>): void
}>

/** One engine process under supervision. */
export class EngineProcess implements Service {
  readonly #process: SupervisedProcess<FromEngine, ToEngine>
  #detector: DetectorInfo | null = null

  constructor(
    readonly setup: EngineSetup,
    readonly events: EngineEvents,
    readonly log: Log,
  ) {
    this.#process = new SupervisedProcess<FromEngine, ToEngine>(
      {
        title: 'engine',
        logFields: { engine: setup.index },
        entry: entryPath(import.meta.url, './main.js'),
        v8Flags,
        setup: () => ({ type: 'setup', setup }) satisfies ToEngine,
        loadAtMostMs,
        onFirstFailure: 'end',
        unavailable: (reason) => new EngineUnavailableError(reason),
      },
      {
        ready: ({ detector }) => this.#ready(detector),
        gone: (reason) => events.gone(reason),
        message: (message) => events.message(message),
      },
      log,
    )
  }

  get health(): Omit<EngineHealth, 'cameras'> {
    return { index: this.setup.index, ...this.#process.health, detector: this.#detector }
  }

  get ready(): boolean {
    return this.#process.ready
  }

  /** Resolves once the first detector runs. @throws GantryError what the engine says when its model cannot be used. */
  start(): Promise<void> {
    return this.#process.start()
  }

  /** Does nothing while the engine is away: what it must know is told again when it is ready. @returns whether it was told. */
  tell(message: ToEngine): boolean {
    return this.#process.tell(message)
  }

  /** @throws EngineUnavailableError `GANTRY_ENGINE_UNAVAILABLE` when the engine is away, dies or does not answer. */
  ask<Q extends EngineQuestion>(question: Q, atMostMs?: number): Promise<EngineAnswers[Q['type']]> {
    return this.#process.ask(question, atMostMs) as Promise<EngineAnswers[Q['type']]>
  }

  /** Idempotent, never rejects. Asks the engine to drain, then kills it. */
  stop(drainMs: number): Promise<void> {
    return this.#process.stop(drainMs)
  }

  #ready(detector: DetectorInfo): void {
    this.#detector = detector
    this.log.info({ engine: this.setup.index, ...describe(detector) }, 'engine ready')
    this.events.ready(detector)
  }
}

function describe({ model, provider, instances, maxBatchSize, head, format }: DetectorInfo) {
  const input = `${format.input.widthPx}x${format.input.heightPx}`
  return { model: `${model.name}/${model.version}`, head, input, provider, instances, maxBatchSize }
}
