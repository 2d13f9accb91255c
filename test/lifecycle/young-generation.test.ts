import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const program = fileURLToPath(new URL('../support/churning.mjs', import.meta.url))
const youngBytes = (mode: string) => Number(execFileSync(process.execPath, [program, mode]).toString())

describe('keepYoungGenerationSmall', () => {
  it('stops the young generation from growing', () => {
    expect(youngBytes('keep')).toBeLessThan(youngBytes('grow') / 4)
  })
})
