import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { acceptedFlags } from '../../src/lifecycle/v8-flags.js'

describe('acceptedFlags', () => {
  it('R21: leaves out what this node ends at with "bad option"', () => {
    expect(acceptedFlags(['--single-threaded-gc', '--no-such-flag-of-v8=8000'])).toEqual([
      '--single-threaded-gc',
    ])
  })

  it('does without flags where the node cannot be asked', () => {
    expect(acceptedFlags(['--single-threaded-gc'], '/nowhere/node')).toEqual([])
  })
})

const program = fileURLToPath(new URL('../support/churning.mjs', import.meta.url))
const youngBytes = (mode: string) => Number(execFileSync(process.execPath, [program, mode]).toString())

describe('keepYoungGenerationSmall', () => {
  it('stops the young generation from growing', () => {
    expect(youngBytes('keep')).toBeLessThan(youngBytes('grow') / 4)
  })
})
