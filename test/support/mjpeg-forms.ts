/** What a server says of its stream, and its bytes. */
export type MjpegForm = Readonly<{
  /** Of the answer; none where it is absent. */
  type?: string
  bytes: (pictures: readonly Buffer[]) => Buffer
}>

type PartForm = Readonly<{
  /** Head of a part; without line ends. */
  head?: (picture: Buffer) => readonly string[]
  before?: string | Buffer
  between?: string | Buffer
  after?: string | Buffer
  nl?: string
}>

const type = 'multipart/x-mixed-replace; boundary=frame'
const typed = 'Content-Type: image/jpeg'
const sized = (picture: Buffer) => `Content-Length: ${picture.length}`

function parts({ head = (picture) => [typed, sized(picture)], ...form }: PartForm = {}): MjpegForm['bytes'] {
  const nl = form.nl ?? '\r\n'
  const delimiter = `--frame${nl}`
  return (pictures) =>
    Buffer.concat(
      [
        form.before ?? delimiter,
        ...pictures.flatMap((picture, index) => [
          ...(index === 0 ? [] : [form.between ?? delimiter]),
          [...head(picture), ...(head(picture).length > 0 ? [''] : [])].map((line) => line + nl).join(''),
          picture,
          form.after ?? nl,
        ]),
      ].map((piece) => Buffer.from(piece as string)),
    )
}

const filler = Buffer.concat([Buffer.alloc(40), Buffer.alloc(9, 0xff)])
/** Nothing but pictures. */
export const alone: MjpegForm['bytes'] = (pictures) => Buffer.concat(pictures)
const tone = Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xdb]), Buffer.alloc(60, 10)])

/** MJPEG over HTTP as cameras and programs send it, by what is odd about it. */
export const mjpegForms: Readonly<Record<string, MjpegForm>> = {
  plain: { type, bytes: parts() },
  'dashes in the header': { type: `${type.slice(0, -5)}--frame`, bytes: parts() },
  'a quoted boundary': { type: 'multipart/x-mixed-replace;boundary="frame"', bytes: parts() },
  'dashes in a quoted boundary, capitals': {
    type: 'Multipart/X-Mixed-Replace; Boundary="--frame"',
    bytes: parts(),
  },
  "another boundary than the body's": { type: `${type.slice(0, -5)}other`, bytes: parts() },
  'no boundary in the header': { type: 'multipart/x-mixed-replace', bytes: parts() },
  'no dashes in the body': {
    type,
    bytes: parts({ before: 'frame\r\n', between: 'frame\r\n' }),
  },
  'no first boundary': { type, bytes: parts({ before: '' }) },
  'a blank line first': { type, bytes: parts({ before: '\r\n--frame\r\n' }) },
  'a preamble': { type, bytes: parts({ before: 'This is a multipart message.\r\n\r\n--frame\r\n' }) },
  'parts without type': { type, bytes: parts({ head: (picture) => [sized(picture)] }) },
  'parts without length': { type, bytes: parts({ head: () => [typed] }) },
  'parts without head': { type, bytes: parts({ head: () => [''] }) },
  'a length of 0': { type, bytes: parts({ head: () => [typed, 'Content-Length: 0'] }) },
  'a length that is too small': {
    type,
    bytes: parts({ head: (picture) => [typed, `Content-Length: ${picture.length - 50}`] }),
  },
  'a length that is too large': {
    type,
    bytes: parts({ head: (picture) => [typed, `Content-Length: ${picture.length + 5_000}`] }),
  },
  'a length that is no number': { type, bytes: parts({ head: () => [typed, 'Content-Length: unknown'] }) },
  'further headers': {
    type,
    bytes: parts({
      head: (picture) => ['X-Timestamp: 295528.317000', typed, 'X-FrameRate: 15.0', sized(picture)],
    }),
  },
  'lower case, no spaces': {
    type,
    bytes: parts({ head: (picture) => ['content-type:image/jpeg', `content-length:${picture.length}`] }),
  },
  'another name of JPEG': {
    type,
    bytes: parts({ head: (picture) => ['Content-Type: image/jpg', sized(picture)] }),
  },
  'LF alone': { type, bytes: parts({ nl: '\n' }) },
  'no line end behind the picture': { type, bytes: parts({ after: '' }) },
  'two line ends behind the picture': { type, bytes: parts({ after: '\r\n\r\n' }) },
  'padding behind the picture': { type, bytes: parts({ after: filler }) },
  'empty parts': { type, bytes: parts({ between: '--frame\r\n\r\n--frame\r\n\r\n\r\n--frame\r\n' }) },
  'parts of text': {
    type,
    bytes: parts({
      between:
        '--frame\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{"motion":1}\r\n--frame\r\n',
    }),
  },
  'parts of sound': {
    type,
    bytes: parts({
      between: Buffer.concat([
        Buffer.from(`--frame\r\nContent-Type: audio/basic\r\nContent-Length: ${tone.length}\r\n\r\n`),
        tone,
        Buffer.from('\r\n--frame\r\n'),
      ]),
    }),
  },
  'parts of sound without length': {
    type,
    bytes: parts({
      between: Buffer.concat([
        Buffer.from('--frame\r\nContent-Type: audio/basic\r\n\r\n'),
        tone,
        Buffer.from('\r\n--frame\r\n'),
      ]),
    }),
  },
  'pictures alone as video/x-motion-jpeg': { type: 'video/x-motion-jpeg', bytes: alone },
  'parts as video/x-motion-jpeg': { type: 'video/x-motion-jpeg', bytes: parts() },
  'pictures alone as image/jpeg': { type: 'image/jpeg', bytes: alone },
  'pictures alone as octets': { type: 'application/octet-stream', bytes: alone },
  'parts as octets': { type: 'application/octet-stream', bytes: parts() },
  'pictures alone without type': { bytes: alone },
  'parts without type of the answer': { bytes: parts() },
  'pictures alone as multipart': { type, bytes: alone },
  'pictures with padding between': {
    type: 'image/jpeg',
    bytes: (pictures) => Buffer.concat(pictures.flatMap((picture) => [picture, filler])),
  },
}
