import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { hasNvidiaSmi } from '../../../src/processes/control/nvidia-smi.js'
import { tempDir } from '../../support/temp-dir.js'

it('is there where the PATH leads to one that may be run', () => {
  const [empty, plain, there] = [tempDir(), tempDir(), tempDir()]
  writeFileSync(join(plain, 'nvidia-smi'), '')
  writeFileSync(join(there, 'nvidia-smi'), '')
  chmodSync(join(plain, 'nvidia-smi'), 0o644)
  chmodSync(join(there, 'nvidia-smi'), 0o755)
  expect(hasNvidiaSmi(`${empty}:/no/such/folder`)).toBe(false)
  expect(hasNvidiaSmi(plain)).toBe(false)
  expect(hasNvidiaSmi(`${empty}:${there}`)).toBe(true)
})
