/** A field of a header block. Names are in lower case, values have a character for each octet. */
export type HeaderField = readonly [name: string, value: string]

/** What an entry counts for in a table beside its letters. RFC 7541, 4.1. */
export const entryOverheadBytes = 32
/** Of a dynamic table, where nothing else is said. */
export const usualTableBytes = 4_096

/** RFC 7541, appendix A; its first entry has index 1. */
export const staticFields: readonly HeaderField[] = [
  [':authority', ''],
  [':method', 'GET'],
  [':method', 'POST'],
  [':path', '/'],
  [':path', '/index.html'],
  [':scheme', 'http'],
  [':scheme', 'https'],
  [':status', '200'],
  [':status', '204'],
  [':status', '206'],
  [':status', '304'],
  [':status', '400'],
  [':status', '404'],
  [':status', '500'],
  ['accept-charset', ''],
  ['accept-encoding', 'gzip, deflate'],
  ...named(
    'accept-language accept-ranges accept access-control-allow-origin age allow authorization cache-control content-disposition',
    'content-encoding content-language content-length content-location content-range content-type cookie date etag expect expires',
    'from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified link location max-forwards',
    'proxy-authenticate proxy-authorization range referer refresh retry-after server set-cookie strict-transport-security',
    'transfer-encoding user-agent vary via www-authenticate',
  ),
]

function named(...lines: readonly string[]): readonly HeaderField[] {
  return lines.flatMap((line) => line.split(' ').map((name) => [name, ''] as const))
}
