import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { waitingShare } from '../../src/lifecycle/pressure.js'
import { tempDir } from '../support/temp-dir.js'

it('is the share of the last ten seconds that the kernel tells', () => {
  const dir = tempDir()
  const text =
    'some avg10=12.34 avg60=5.00 avg300=1.00 total=1\nfull avg10=3.00 avg60=2.00 avg300=1.00 total=1\n'
  writeFileSync(join(dir, 'memory'), text)
  expect(waitingShare('memory', dir)).toBe(12.34)
})

it('is unknown where the kernel does not tell', () => {
  expect(waitingShare('cpu', tempDir())).toBeUndefined()
})
