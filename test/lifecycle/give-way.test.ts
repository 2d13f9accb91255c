import { fork } from 'node:child_process'
import { once } from 'node:events'
import { getPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

type Told = { nice: number; session: number | null; policies: number[] }

const entry = fileURLToPath(new URL('../support/giving-way.mjs', import.meta.url))
/** Of `sched_setscheduler(2)`. */
const schedIdle = 5

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
