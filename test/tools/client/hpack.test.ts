import { describe, expect, it } from 'vitest'
import { HpackDecoder } from '../../../src/tools/client/hpack-decoder.js'
import { HpackEncoder } from '../../../src/tools/client/hpack-encoder.js'
import { huffmanText } from '../../../src/tools/client/hpack-huffman.js'
import type { HeaderField } from '../../../src/tools/client/hpack-tables.js'

const hex = (text: string) => Buffer.from(text.replaceAll(/\s/g, ''), 'hex')

/** A table of 256 bytes. */
const small = '3fe101'
const date = (second: number) => ['date', `Mon, 21 Oct 2013 20:13:${second} GMT`] as const
const place = ['location', 'https://www.example.com'] as const

it.each([
  [
    'as text',
    [
      `4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474
       7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d`,
      '4803 3330 37c1 c0bf',
    ],
  ],
  [
    'with the codes of Huffman',
    [
      `4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae
       82ae 43d3`,
      '4883 640e ffc1 c0bf',
      `88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960
       d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07`,
    ],
  ],
])('reads the blocks of RFC 7541, appendix C, %s', (_, blocks) => {
  const decoder = new HpackDecoder()
  const read = blocks.map((block, index) => [...decoder.read(hex((index === 0 ? small : '') + block))])
  const cached = ['cache-control', 'private'] as const
  const wanted = [
    [[':status', '302'], cached, date(21), place],
    [[':status', '307'], cached, date(21), place],
    [
      [':status', '200'],
      cached,
      date(22),
      place,
      ['content-encoding', 'gzip'],
      ['set-cookie', 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1'],
    ],
  ]
  expect(read).toEqual(wanted.slice(0, blocks.length))
})

it.each([
  ['a number without an end', 'ffffffffffffffff'],
  ['a number that is cut off', 'ff'],
  ['an entry that there is not', 'be'],
  ['the entry 0', '80'],
  ['an entry that has left the table', '400161016220be'],
  ['a text that is longer than the block', '400a61'],
  ['a table larger than it may be', '3fe17f'],
  ['an end of a string within it', '4084ffffffff00'],
  ['a last octet filled with zeros', '40811800'],
  ['a last octet that is not needed', '40821fff00'],
])('refuses %s', (_, block) => {
  expect(() => new HpackDecoder().read(hex(block))).toThrow(
    expect.objectContaining({ name: 'Http2SyntaxError' }),
  )
})

it('reads the code of every octet', () => {
  // Of another encoder: hpack 4 of PyPI.
  const codes = `
    ffc7fffd8fffffe2fffffe3fffffe4fffffe5fffffe6fffffe7fffffe8ffffeafffffff3fffffa7fffffabffffffdfffffebfffffecfffffedfffffe
    efffffefffffff0ffffff1ffffff2fffffffbfffffcffffffd3fffffd7fffffdbfffffdffffffe3fffffe7fffffebfffffed4fe3f9ffaffcabf1febf
    afefe7fdfd2cbb00089969b71d79fb9f7fff20ffbff3ff50ddbd7f061c58f265cd9f469d5af66dddbf871e5f9cff7ff7fffc3ff9ffe45fff4719242c
    b34e6e9d68a6a3d7dac426defe3cfaf7fffbfe7ffbffdffffffcfffe6ffff4bfff9ffffa3fffd3ffff53fffd5ffffb3fffeb7fffdaffffb7ffff73ff
    feeffffdeffffebffffbfffffd9ffffdbfffebffffe0ffffeeffffc3ffff8bffff1ffffe4fffee7fffb1ffff97fffd9ffffcdffff9fffffbffffdaff
    feeffff4ffffb7fffee7fffe8ffffd3fffdeffffd5fffeeffffbdffffe1fffdfffff7fffff5ffffecffff07fff87fffe0ffff17fffedffff87ffff77
    fffeffffeaffff8bfffe3ffff93ffff87fffcbffff37ffff1fffff83ffffe1fffebfffe3ffff3fffff2ffffa3ffffd9fffff17ffffc7fffff27ffffd
    efffffbffffff2fffff8fffffb7fff97fff8fffffe6fffffc1fffff87ffffe7fffffc5ffffe5fffe4ffff2fffffd1fffff4ffffffefffffe3fffffc9
    fffff97fffb3ffffcffffb7fffcdffff4ffff9ffffd1ffffcffffeaffffafffffddffffeffffff4fffff5fffffabffffa7ffffd7fffff9bffffecfff
    ffb7fffff3fffffe8fffffd3fffffabfffff5fffffff7ffffecfffffdbfffffbbfffff7ffffff0fffffbbf
  `
  expect(huffmanText(hex(codes))).toBe(Buffer.from([...Array(256).keys()]).toString('latin1'))
})

describe('blocks that are written', () => {
  const call = (path: string): readonly HeaderField[] => [
    [':method', 'POST'],
    [':path', path],
    ['te', 'trailers'],
    ['content-type', 'application/grpc'],
  ]

  it('are read again, and short from the second time on', () => {
    const [encoder, decoder] = [new HpackEncoder(), new HpackDecoder()]
    const [first, second] = [call('/a'), call('/b')]
    const lengths = [first, second, first, first, second].map((fields) => {
      const block = encoder.block(fields)
      expect([...decoder.read(block)]).toEqual(fields)
      return block.length
    })
    expect(lengths.slice(2)).toEqual([4, 4, 4])
  })

  it.each([0, 60, 200, 4_096, 65_536])('keep to a table of %i bytes', (bytes) => {
    const [encoder, decoder] = [new HpackEncoder(), new HpackDecoder()]
    const fields = Array.from({ length: 150 }, (_, index) => call(`/${index}/${'x'.repeat(index)}`))
    expect([...decoder.read(encoder.block(fields[0]!))]).toEqual(fields[0])
    encoder.setTable(bytes)
    for (const each of [...fields, ...fields]) {
      const block = encoder.block(each)
      expect([...decoder.read(block)]).toEqual(each)
    }
  })

  it('tell a table that became smaller before anything else', () => {
    const encoder = new HpackEncoder()
    encoder.setTable(100)
    expect(encoder.block(call('/a')).subarray(0, 3)).toEqual(hex('203f45'))
  })
})
