import { open, readFile, rename, rm } from 'node:fs/promises'
import { z } from 'zod'
import { byTrueName } from '../../lifecycle/system-limit.js'
import { BatchStateError } from './batch-errors.js'
import { marksSchema } from './progress-marks.js'

const countsSchema = z.strictObject({
  pictures: z.number().int().min(0),
  detections: z.number().int().min(0),
  errors: z.number().int().min(0),
})
export type BatchCounts = Readonly<z.infer<typeof countsSchema>>

/** What a run was asked for; the run that goes on must be asked for the same. Values are texts for people. */
export type RunSettings = Readonly<Record<string, string>>

const stateSchema = z.strictObject({
  version: z.literal(1),
  /** Part of the ids of records: the same for every part of a run that was cut. */
  runId: z.string().min(1),
  settings: z.record(z.string(), z.string()),
  files: z.number().int().min(0),
  /** Names of the classes, in the order of the model. */
  labels: z.array(z.string()),
  /** Bytes of the output and of the errors that belong to what is done. */
  outputBytes: z.number().int().min(0),
  errorBytes: z.number().int().min(0),
  marks: marksSchema,
  counts: countsSchema,
  finished: z.boolean(),
})
/** Where a run is, as one file that is replaced as a whole after the output is on the disk. */
export type RunState = Readonly<z.infer<typeof stateSchema>>

/** @returns undefined where there is none. @throws BatchStateError for one that is not understood; SystemLimitError */
export async function loadRunState(path: string): Promise<RunState | undefined> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw byTrueName(`the state of the run in ${path} cannot be read`, error)
  }
  try {
    return stateSchema.parse(JSON.parse(text))
  } catch {
    throw new BatchStateError(
      `the state of the run in ${path} is not understood`,
      'It is of another version or was changed: begin anew with --restart.',
    )
  }
}

/** Writes beside, to the disk, and renames: whatever ends the process leaves the old state or the new one. @throws SystemLimitError */
export async function saveRunState(path: string, state: RunState): Promise<void> {
  const beside = `${path}.tmp`
  try {
    const file = await open(beside, 'w')
    try {
      await file.writeFile(JSON.stringify(state))
      await file.datasync()
    } finally {
      await file.close()
    }
    await rename(beside, path)
  } catch (error) {
    await rm(beside, { force: true }).catch(() => undefined)
    throw byTrueName('the state of the run cannot be kept', error)
  }
}

/** @throws BatchStateError that names each setting that is not what it was */
export function checkSameSettings(output: string, was: RunSettings, is: RunSettings): void {
  const names = [...new Set([...Object.keys(was), ...Object.keys(is)])]
  const changed = names.filter((name) => was[name] !== is[name])
  if (changed.length === 0) return
  const told = changed.map((name) => `${name} was ${was[name] ?? 'not set'}, now ${is[name] ?? 'not set'}`)
  throw new BatchStateError(
    `${output} belongs to a run with other settings: ${told.join('; ')}`,
    'Give the settings it was begun with, or name another --out, or begin anew with --restart.',
  )
}
