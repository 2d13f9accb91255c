/**
 * The process in which measurements run, one after the other: what ends it, and what keeps it longer than it should, does not end the
 * bench. It leads a group, with all that it starts, and ends with the bench. Argument: a folder of its own, which goes with it.
 */
import { rmSync } from 'node:fs'
import { measureCeiling } from './ceilings.js'
import { measureFault } from './faults.js'
import { type Context, NotHere, type Tell } from './measure.js'
import type { ToBench, ToChild } from './measurer.js'
import type { Job } from './plan.js'
import { measureScheduler } from './scheduler.js'
import { measureServer } from './server.js'
import { measureMost, measureService } from './service.js'

const [scratch = ''] = process.argv.slice(2)
// What services and their decoders leave behind.
process.env['TMPDIR'] = scratch
const say = (message: ToBench) => process.send!(message)

process.on('disconnect', () => {
  rmSync(scratch, { recursive: true, force: true })
  process.kill(-process.pid, 'SIGKILL')
})
process.on('message', ({ job, context, standing }: ToChild) => {
  const tell: Tell = (place, unit, figures, windows = []) =>
    say({ type: 'told', place, unit, figures, windows })
  measure(job, context, tell, (name) => standing.includes(name)).then(
    () => say({ type: 'done' }),
    (error: unknown) => {
      if (error instanceof NotHere) say({ type: 'not here', reason: error.message })
      else say({ type: 'failed', reason: reasonOf(error) })
    },
  )
})

function measure(job: Job, context: Context, tell: Tell, has: (name: string) => boolean): Promise<void> {
  switch (job.kind) {
    case 'naive':
    case 'bare':
    case 'bound':
      return measureCeiling(job, context, tell)
    case 'scheduler':
      return measureScheduler(job, context, tell)
    case 'service':
      return measureService(job, context, tell)
    case 'most':
      return measureMost(job, context, tell)
    case 'server':
      return measureServer(job, context, tell, has)
    case 'fault':
      return measureFault(job, context, tell)
    default:
      return job satisfies never
  }
}

/** In a line, without what programs print that is no text. */
function reasonOf(error: unknown): string {
  return causes(error)
    .replaceAll(/[^ -~]+/g, ' ')
    .slice(0, 500)
}

function causes(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause === undefined ? error.message : `${error.message}: ${causes(error.cause)}`
}
