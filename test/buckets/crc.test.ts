import { expect, it } from 'vitest'
import { Crc } from '../../src/buckets/crc.js'

/** The check values of the catalogue of CRCs: of the digits from 1 to 9. */
it.each([
  ['crc32c', 'e3069283'],
  ['crc64nvme', 'ae8b14860a799888'],
] as const)('computes %s as others do, in any pieces', (name, check) => {
  for (const pieces of [['123456789'], ['1', '', '2345', '6789']]) {
    const crc = new Crc(name)
    for (const piece of pieces) crc.update(Buffer.from(piece))
    expect(crc.digest().toString('hex')).toBe(check)
  }
})
