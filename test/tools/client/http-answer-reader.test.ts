import { describe, expect, it } from 'vitest'
import { headerOf, HttpAnswerReader } from '../../../src/tools/client/http-answer-reader.js'

/** Reads an answer in pieces of so many bytes. */
function readIn(pieceBytes: number, text: string, keep = true) {
  const reader = new HttpAnswerReader()
  const bytes = Buffer.from(text)
  let answer = undefined
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    expect(answer).toBeUndefined()
    answer = reader.read(bytes.subarray(at, at + pieceBytes), keep)
  }
  return answer ?? reader.end()
}

const sized = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\ncontent-length: 5\r\n\r\nhello'
const chunked =
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;name=value\r\nlo\r\n0\r\nTrailer: x\r\n\r\n'
const untilClosed = 'HTTP/1.1 200 OK\r\n\r\nhello'

describe.each([1, 2, 7, 1_000])('in pieces of %i bytes', (pieceBytes) => {
  it.each([
    ['with a length', sized, true],
    ['in chunks', chunked, true],
    ['that ends with the connection', untilClosed, false],
    ['after 100 Continue', `HTTP/1.1 100 Continue\r\n\r\n${sized}`, true],
    ['of HTTP/1.0', sized.replace('1.1', '1.0'), false],
    ['that closes', sized.replace('content-length', 'Connection: close\r\nContent-Length'), false],
  ])('reads an answer %s', (_, text, keepAlive) => {
    expect(readIn(pieceBytes, text)).toMatchObject({ status: 200, keepAlive, body: Buffer.from('hello') })
  })

  it('drops a body that nobody wants, but not the words of a refusal', () => {
    expect(readIn(pieceBytes, sized, false)?.body).toHaveLength(0)
    expect(readIn(pieceBytes, chunked, false)?.body).toHaveLength(0)
    expect(readIn(pieceBytes, sized.replace('200', '503'), false)?.body.toString()).toBe('hello')
  })

  it('reads answers without a body', () => {
    expect(readIn(pieceBytes, 'HTTP/1.1 204 No Content\r\n\r\n')).toMatchObject({ status: 204 })
    expect(readIn(pieceBytes, 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')).toMatchObject({ status: 200 })
  })
})

it('reads one answer after another', () => {
  const reader = new HttpAnswerReader()
  for (const text of [sized, chunked, sized])
    expect(reader.read(Buffer.from(text), true)?.body.toString()).toBe('hello')
})

it.each([
  ['another protocol', 'SSH-2.0-OpenSSH\r\n'],
  ['a line that is none', 'HTTP/2 200\r\n\r\n'],
  ['a chunk without a size', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n'],
  ['more than was announced', `${sized} and more`],
  ['a head without an end', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(70_000)}`],
])('refuses %s', (_, text) => {
  expect(() => new HttpAnswerReader().read(Buffer.from(text), true)).toThrow()
})

it('finds headers in any case', () => {
  const head = 'Content-Type: a/b\r\nINFERENCE-HEADER-CONTENT-LENGTH:  12 '
  expect(headerOf(head, 'inference-header-content-length')).toBe('12')
  expect(headerOf(head, 'content-length')).toBeUndefined()
})
