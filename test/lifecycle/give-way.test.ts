import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

type Told = { nice: number; session: number | null; allowed: string[] }

const entry = fileURLToPath(new URL('../support/giving-way.mjs', import.meta.url))

function coresAllowedHere(): string {
  return /Cpus_allowed_list:\s+(\S+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? ''
}

it.skipIf(process.platform !== 'linux')(
  'lowers the process and its session, and leaves the first core alone with all its threads',
  async () => {
    const child = fork(entry, ['10'], { detached: true })
    const [told] = (await once(child, 'message')) as [Told]
    expect(told.nice).toBe(Math.max(10, getPriority()))
    if (told.session !== null) expect(told.session).toBe(10)
    const here = coresAllowedHere()
    const expected = here === '0-1' ? '1' : undefined
    expect(new Set(told.allowed).size).toBe(1)
    if (expected !== undefined) expect(told.allowed[0]).toBe(expected)
    else if (/[,-]/.test(here)) expect(told.allowed[0]).not.toBe(here)
    else expect(told.allowed[0]).toBe(here)
    await once(child, 'exit')
  },
)
