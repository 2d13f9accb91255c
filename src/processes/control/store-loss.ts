import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { NodeNote } from '../../cluster/node-note.js'
import type { SinkHealth } from '../../delivery/result-sink.js'
import { wallMs } from '../../lifecycle/clock.js'
import { reasonOf } from '../../delivery/kafka/kafka-errors.js'
import type { Log } from '../../lifecycle/log.js'
import type { Gap } from '../../store/record.js'
import { storeFileName } from '../../store/record-store.js'

const everyMs = 10_000
const idFileName = 'store-id'

const noteSchema = z.object({
  store: z.string(),
  sinks: z.record(z.string(), z.object({ deliveredMs: z.number(), queued: z.number() })),
})
type Note = z.infer<typeof noteSchema>

/** The store of this start: another `id` says that what an earlier one had is gone. */
export type StoreIdentity = Readonly<{ id: string; startedMs: number }>

/**
 * To be asked before the store is opened, which makes its file where there is none.
 *
 * @returns undefined for a folder that cannot be written.
 */
export async function storeIdentity(folder: string): Promise<StoreIdentity | undefined> {
  const startedMs = wallMs()
  const path = join(folder, idFileName)
  try {
    if (existsSync(join(folder, storeFileName))) {
      const id = await readFile(path, 'utf8').catch(() => '')
      if (id !== '') return { id, startedMs }
    }
    const id = randomUUID()
    await mkdir(folder, { recursive: true })
    await writeFile(path, id)
    return { id, startedMs }
  } catch {
    return undefined
  }
}

export type StoreLossDeps = Readonly<{
  note: Pick<NodeNote, 'read' | 'write' | 'stop'>
  identity: StoreIdentity
  sinks: () => readonly SinkHealth[]
  /** Whether another node bears the name of this one, so that the note may be that one's. */
  isNameShared: () => Promise<boolean>
  tell: (gap: Gap) => void
  log: Log
}>

/**
 * Tells that a node has lost its store: it leaves a note with the brokers, which store it has and until when each sink had everything. One that
 * starts with another store finds it, and what was accepted since then may be gone.
 */
export class StoreLoss {
  #before: Note | undefined
  #isKnown = false
  #timer: NodeJS.Timeout | undefined
  #turn: Promise<void> = Promise.resolve()

  constructor(readonly deps: StoreLossDeps) {}

  start(): void {
    const turn = () => void (this.#turn = this.#turn.then(() => this.#look()))
    this.#timer = setInterval(turn, everyMs)
    turn()
  }

  /** Leaves the last note; for when sinks have what they will have. Never rejects. */
  async stop(): Promise<void> {
    if (this.#timer === undefined) return
    clearInterval(this.#timer)
    await this.#turn
    await this.#look()
    await this.deps.note.stop()
  }

  async #look(): Promise<void> {
    const { note, log } = this.deps
    try {
      if (!this.#isKnown) await this.#compare()
      this.#before = this.#now()
      await note.write(JSON.stringify(this.#before))
    } catch (error) {
      log.debug({ reason: reasonOf(error) }, 'note of the store not kept with the brokers')
    }
  }

  /** With what the last start left. */
  async #compare(): Promise<void> {
    const { note, identity, tell, isNameShared, log } = this.deps
    const left = noteIn(await note.read())
    this.#isKnown = true
    if (left === undefined) return
    if (left.store === identity.id) return void (this.#before = left)
    if (await isNameShared()) return
    log.warn({ store: left.store }, 'the store that this node had is gone: sinks are told what they may lack')
    for (const [sink, { deliveredMs, queued }] of Object.entries(left.sinks))
      if (this.deps.sinks().some(({ name }) => name === sink))
        tell({
          ...{ sink, cameraId: '*', reason: 'store_lost', dropped: Math.max(1, queued) },
          fromMs: Math.min(deliveredMs, identity.startedMs),
          toMs: identity.startedMs,
        })
  }

  #now(): Note {
    const sinks = this.deps.sinks().map(({ name, queued }) => {
      const deliveredMs =
        queued === 0 ? wallMs() : (this.#before?.sinks[name]?.deliveredMs ?? this.deps.identity.startedMs)
      return [name, { deliveredMs, queued }] as const
    })
    return { store: this.deps.identity.id, sinks: Object.fromEntries(sinks) }
  }
}

function noteIn(text: string | undefined): Note | undefined {
  if (text === undefined) return undefined
  try {
    return noteSchema.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}
