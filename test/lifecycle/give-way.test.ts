import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

type Told = { nice: number; session: number | null; policies: number[] }

const entry = fileURLToPath(new URL('../support/giving-way.mjs', import.meta.url))
/** Of `sched_setscheduler(2)`. */
const schedIdle = 5
const schedNormal = 0

it.skipIf(process.platform !== 'linux')(
  'lowers the process and its session, and lets all its threads, later ones too, run as idle',
  async () => {
    const child = fork(entry, ['10'], { detached: true })
    const [told] = (await once(child, 'message')) as [Told]
    expect(told.nice).toBe(Math.max(10, getPriority()))
    if (told.session !== null) expect(told.session).toBe(10)
    expect(new Set(told.policies)).toEqual(new Set([schedIdle]))
    await once(child, 'exit')
  },
)

it.skipIf(process.platform !== 'linux')(
  'lowers a process that must go on by its weight, and lets it run as idle only where its session keeps that weight',
  async () => {
    const child = fork(entry, ['5', 'takeLess'], { detached: true })
    const [told] = (await once(child, 'message')) as [Told]
    expect(told.nice).toBe(Math.max(5, getPriority()))
    if (told.session !== null) expect(told.session).toBe(5)
    const weighed = told.session !== null && sessionsAreWeighed()
    expect(new Set(told.policies)).toEqual(new Set([weighed ? schedIdle : schedNormal]))
    await once(child, 'exit')
  },
)

/** Of processes outside of every control group that shares out the processor. */
function sessionsAreWeighed(): boolean {
  const read = (path: string) => readFileSync(path, 'utf8')
  const contained = existsSync('/sys/fs/cgroup/cgroup.type')
  const grouped = /^\d+:(cpu|cpu,cpuacct|cpuacct,cpu|):\/./m.test(read('/proc/self/cgroup'))
  return read('/proc/sys/kernel/sched_autogroup_enabled').trim() === '1' && !contained && !grouped
}
