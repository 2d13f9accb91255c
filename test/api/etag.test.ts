import { expect, it } from 'vitest'
import { etagOf, isKnown } from '../../src/api/etag.js'

it('names bytes, the same ones alike', () => {
  const name = etagOf(Buffer.from('one'))
  expect(name).toMatch(/^"[\w-]{27}"$/)
  expect(etagOf(Buffer.from('one'))).toBe(name)
  expect(etagOf(Buffer.from('other'))).not.toBe(name)
})

it.each([
  ['no header', undefined, false],
  ['the name', '"a"', true],
  ['a weak one, as of a proxy that compresses', 'W/"a"', true],
  ['one of several', '"b", "a"', true],
  ['whatever there is', '*', true],
  ['another', '"b"', false],
  ['a part of it', '"aa"', false],
  ['nothing', '', false],
])('knows from If-None-Match what who asks has: %s', (_, asked, known) => {
  expect(isKnown('"a"', asked)).toBe(known)
})
