import { describe, expect, it } from 'vitest'
import { KeptText } from '../../src/messages/kept-text.js'

function written(...texts: readonly string[]): KeptText {
  const kept = new KeptText()
  for (const text of texts) kept.write(Buffer.from(text))
  return kept
}

describe('KeptText', () => {
  it.each([
    ['nothing yet', written(), '', 0],
    ['a text', written('helmet'), 'helmet', 256],
    ['more bytes than characters', written('ø'.repeat(200)), 'ø'.repeat(200), 512],
    ['a shorter text in the same memory', written('x'.repeat(300), 'short'), 'short', 512],
    ['a longer one in larger memory', written('short', 'x'.repeat(300)), 'x'.repeat(300), 512],
    ['a much shorter one in memory of its size', written('x'.repeat(3_000), 'short'), 'short', 256],
  ])('%s', (_, kept, text, capacity) => {
    expect(kept.toString()).toBe(text)
    expect(kept.capacity).toBe(capacity)
  })

  it('finds parts of what it holds, and none of what it held', () => {
    const kept = written('{"label":"helmet"}', '{"label":1}')
    expect(kept.includes('"label":1')).toBe(true)
    expect(kept.includes('helmet')).toBe(false)
  })
})
