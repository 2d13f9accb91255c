/** The Huffman tables K.3 to K.6 of ITU T.81, as one segment. */
const standardTables = Buffer.from(
  [
    '/8QBogAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoLAQADAQEBAQEBAQEBAAAAAAAAAQIDBAUGBwgJCgsQAAIBAwMCBAMFBQQEAAABfQECAwAE',
    'EQUSITFBBhNRYQcicRQygZGhCCNCscEVUtHwJDNicoIJChYXGBkaJSYnKCkqNDU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6',
    'g4SFhoeIiYqSk5SVlpeYmZqio6Slpqeoqaqys7S1tre4ubrCw8TFxsfIycrS09TV1tfY2drh4uPk5ebn6Onq8fLz9PX29/j5+hEAAgECBAQDBAcF',
    'BAQAAQJ3AAECAxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVm',
    'Z2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6',
  ].join(''),
  'base64',
)

/**
 * A JPEG with the Huffman tables of the standard where it has none, which are meant then (AVI 1.0, RFC 2435): a decoder that has seen
 * another picture before would take its tables.
 *
 * @returns the same where there is nothing to add.
 */
export function withHuffmanTables(jpeg: Buffer): Buffer {
  for (let at = 2; at + 4 <= jpeg.length && jpeg[at] === 0xff;) {
    const code = jpeg[at + 1] ?? 0
    // Tables, or a picture that is not coded by them alone.
    if (code === 0xc4 || (code >= 0xc2 && code <= 0xcf)) return jpeg
    if (code === 0xda) return Buffer.concat([jpeg.subarray(0, at), standardTables, jpeg.subarray(at)])
    at += code === 0xff ? 1 : 2 + jpeg.readUInt16BE(at + 2)
  }
  return jpeg
}
