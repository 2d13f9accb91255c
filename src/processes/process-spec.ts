import type { ErrorRecord, GantryError } from '../errors.js'
import type { OwnMessage } from './child-messages.js'
import type { Said } from './frame-channel.js'
import type { SilenceLimits } from './silence-watch.js'

/** A process that is to be supervised. */
export type ProcessSpec = Readonly<{
  /** `engine`, as logs and reasons call it. */
  title: string
  /** Fields of every line it is the subject of. */
  logFields: Readonly<Record<string, unknown>>
  /** Path of the compiled entry file. */
  entry: string
  /** What V8 is told for the process; a flag that this version of Node does not know is left out. */
  v8Flags?: readonly string[]
  /** Of its environment, where ours says nothing of it. */
  env?: Readonly<Record<string, string>>
  /** Answer to `online`, made anew for every start. */
  setup: () => object
  /** Longest from start to `ready`. */
  loadAtMostMs: number
  /** Whether what it says when its first start fails ends the start; else that is a death like another. Absent: nothing does. */
  endsStart?(failure: ErrorRecord): boolean
  /** Its first start is tried once: whatever ends that ends the start. */
  triesOnce?: boolean
  /** When its silence means that it hangs; by default 10 s, however busy it is. */
  silence?: Partial<SilenceLimits>
  /** The error of a question that cannot be answered. */
  unavailable(reason: string): GantryError
}>

/** How a process ended. */
export type EndOfProcess = Readonly<{
  /** Signal or exit code. */
  reason: string
  /** It was not ended from here. */
  byItself: boolean
  /** Why it asked to be ended, or could not start. */
  failure: ErrorRecord | undefined
  /** How often it ended within a minute. */
  deaths: number
}>

/** What is told of it. */
export type ProcessEvents<From extends Said> = Readonly<{
  /** It serves. Called again after every restart. */
  ready(message: Extract<From, Said<'ready'>>): void
  /** It is gone, with whatever was in it. */
  gone(reason: string): void
  /**
   * Called before `gone`. Absent: undefined.
   *
   * @returns after how many milliseconds it is started again, however often it ended before: 0 where what ended it is kept from doing so
   * again. A process that is held back so is not waited for by the start. `undefined`: the later, the more often it
   * ended.
   */
  startsAgainIn?(end: EndOfProcess): number | undefined
  message(message: OwnMessage<From>): void
  /** What it says in bytes; a view, which keeps what came with it. Absent: it says nothing so. @throws FrameError: it is ended then. */
  bytes?(body: Buffer): void
}>
