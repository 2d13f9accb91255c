/** Bytes that are no HTTP/2; the connection is of no use after them. */
export class Http2SyntaxError extends Error {
  constructor(detail: string) {
    super(detail)
    this.name = 'Http2SyntaxError'
  }
}
