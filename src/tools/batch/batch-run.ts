import { toErrorRecord } from '../../errors.js'
import { nowMs } from '../../lifecycle/clock.js'
import type { BatchError } from '../../messages/batch-line.js'
import { BatchStoppedError } from './batch-errors.js'
import { type ListedFile, readFileList } from './file-list.js'
import type { BatchOutput, ScoredItem } from './outputs/batch-output.js'
import type { LineFile } from './outputs/line-file.js'
import { ProgressMarks } from './progress-marks.js'
import { type BatchProgress, Rate } from './rate.js'
import { type BatchCounts, type RunState, saveRunState } from './run-state.js'
import type { FileScorer } from './score-file.js'

/** Results in memory after which they are written at once, and after which scoring waits for that. */
const writeAtBytes = 1024 ** 2
const mostWaitingBytes = 8 * 1024 ** 2

export type BatchRunOptions = Readonly<{
  state: RunState
  statePath: string
  listPath: string
  scorer: FileScorer
  /** Files that are read or scored at once. */
  lanes: number
  output: BatchOutput
  errors: LineFile
  /** What is scored in this time is scored anew after a kill. */
  commitEveryMs: number
  /** Ends the run: what is begun is finished and kept. */
  signal: AbortSignal
  progress(progress: BatchProgress): void
}>

/**
 * Scores the files of a list that are not done. Now and then what is there goes to the disk, and then the state that counts it: a run that
 * is cut anywhere goes on from there, and what is behind it in the output is cut off.
 */
export class BatchRun {
  readonly #marks: ProgressMarks
  readonly #counts: { -readonly [Name in keyof BatchCounts]: BatchCounts[Name] }
  readonly #rate: Rate
  readonly #parts = new Map<number, number>()
  #state: RunState
  #failure: unknown
  #failed = false
  #committing: Promise<void> = Promise.resolve()
  #writing = false

  constructor(readonly options: BatchRunOptions) {
    const { state } = options
    this.#state = state
    this.#marks = new ProgressMarks(state.marks)
    this.#counts = { ...state.counts }
    this.#rate = new Rate(nowMs(), state.counts.pictures, this.#share())
  }

  /** Where the run is; after `run` as it was kept. */
  get state(): RunState {
    return this.#state
  }

  get progress(): BatchProgress {
    const { pictures } = this.#counts
    return {
      ...this.#counts,
      filesDone: this.#marks.filesDone,
      files: this.#state.files,
      ...this.#rate.at(nowMs(), pictures, this.#share()),
    }
  }

  /**
   * @returns whether all files are done; otherwise the signal ended the run.
   * @throws BatchStoppedError; SystemLimitError for a disk that is full. What was kept before stays.
   */
  async run(): Promise<boolean> {
    const { listPath, lanes, commitEveryMs } = this.options
    const files = readFileList(listPath, this.#marks.next)
    const timer = setInterval(() => {
      this.options.progress(this.progress)
      void this.#commit()
    }, commitEveryMs)
    try {
      await Promise.all(Array.from({ length: lanes }, () => this.#lane(files)))
    } finally {
      clearInterval(timer)
      await files.return()
      await this.#commit()
    }
    if (this.#failed) throw this.#failure
    this.options.progress(this.progress)
    return this.#marks.filesDone === this.#state.files
  }

  /** The run is done, and nothing of it is left to do. @throws SystemLimitError */
  async keepFinished(): Promise<void> {
    this.#state = { ...this.#state, finished: true }
    await saveRunState(this.options.statePath, this.#state)
  }

  get #ending(): boolean {
    return this.#failed || this.options.signal.aborted
  }

  async #lane(files: AsyncGenerator<ListedFile, void>): Promise<void> {
    while (!this.#ending) {
      const next = await files.next().catch((error: unknown) => this.#fail(error))
      if (next === undefined || next.done === true) return
      if (!this.#marks.isDone(next.value.index)) await this.#file(next.value)
    }
  }

  async #file(file: ListedFile): Promise<void> {
    const { index, name } = file
    try {
      const done = await this.options.scorer.score(file, () => this.#marks.framesDone(index), {
        scored: (result) => this.#scored(index, result),
        failed: (item, frame, error) => {
          this.#error(item, error)
          this.#marks.frameDone(index, frame)
        },
        part: (share) => this.#parts.set(index, Math.min(1, share)),
        room: () => this.#room(),
      })
      if (!done) return
    } catch (error) {
      if (error instanceof BatchStoppedError) return this.#fail(error)
      // What fails because it is being ended is no failure of the file.
      if (this.#ending) return
      this.#error(name, error)
    } finally {
      this.#parts.delete(index)
    }
    this.#marks.fileDone(index)
    await this.#room()
  }

  #scored(index: number, result: ScoredItem): void {
    this.options.output.add(result)
    this.#counts.pictures += 1
    this.#counts.detections += result.line.detections.length
    // At once: what is kept of the output and what is marked as done are of one moment.
    const { frame } = result.line
    if (frame === undefined) this.#marks.fileDone(index)
    else this.#marks.frameDone(index, frame)
  }

  #error(item: string, error: unknown): void {
    const line: BatchError = { item, ...toErrorRecord(error) }
    this.options.errors.add(JSON.stringify(line))
    this.#counts.errors += 1
  }

  #fail(error: unknown): void {
    if (this.#failed) return
    this.#failed = true
    this.#failure = error
  }

  async #room(): Promise<void> {
    const { waitingBytes } = this.options.output
    if (waitingBytes > writeAtBytes && !this.#writing) void this.#commit()
    if (waitingBytes > mostWaitingBytes) await this.#committing
  }

  /** One after another. Never rejects: what fails ends the run. */
  #commit(): Promise<void> {
    this.#committing = this.#committing.then(() => this.#keep()).catch((error: unknown) => this.#fail(error))
    return this.#committing
  }

  async #keep(): Promise<void> {
    // Behind a failed write nothing may be counted.
    if (this.#failed && !(this.#failure instanceof BatchStoppedError)) return
    const { output, errors, statePath } = this.options
    this.#writing = true
    try {
      // Of one moment: nothing else runs until all of them have taken what there is.
      const marks = this.#marks.marks()
      const counts = { ...this.#counts }
      const writing = [output.flush(), errors.flush()] as const
      const [{ bytes, refused }, errorBytes] = await Promise.all(writing)
      for (const { line, reason } of refused) this.#refused(line.item, reason, counts)
      const errorsThen = refused.length === 0 ? errorBytes : await errors.flush()
      this.#state = { ...this.#state, marks, counts, outputBytes: bytes, errorBytes: errorsThen }
      await saveRunState(statePath, this.#state)
    } finally {
      this.#writing = false
    }
  }

  #refused(item: string, reason: string, counts: { errors: number }): void {
    const line: BatchError = {
      item,
      code: 'GANTRY_SINK_UNAVAILABLE',
      message: `the broker refuses its record: ${reason}`,
      hint: 'Look at max.message.bytes of the topic and at its schema rules.',
    }
    this.options.errors.add(JSON.stringify(line))
    counts.errors += 1
    this.#counts.errors += 1
  }

  #share(): number {
    const { files } = this.#state
    if (files === 0) return 1
    const parts = [...this.#parts.values()].reduce((sum, part) => sum + part, 0)
    return Math.min(1, (this.#marks.filesDone + parts) / files)
  }
}
