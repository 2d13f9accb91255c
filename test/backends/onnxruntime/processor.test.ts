import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import { flagsIn, thisProcessor } from '../../../src/backends/onnxruntime/processor.js'

it('reads the flags of the first processor', () => {
  const text =
    'processor\t: 0\nflags\t\t: fpu avx2 avx512_vnni\nbugs\t\t: none\n\nprocessor\t: 1\nflags\t\t: fpu\n'
  expect([...flagsIn(text)]).toEqual(['fpu', 'avx2', 'avx512_vnni'])
})

it('knows no flags where there is no such line', () => {
  expect(flagsIn('Features\t: fp asimd\n').size).toBe(0)
  expect(flagsIn('').size).toBe(0)
})

it.skipIf(process.arch !== 'x64' || !existsSync('/proc/cpuinfo'))('knows those of this machine', () => {
  expect([...thisProcessor().flags]).toContain('sse2')
})
