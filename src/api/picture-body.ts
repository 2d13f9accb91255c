/** What documents and hints name. */
export const pictureTypes: readonly string[] = ['image/jpeg', 'image/png']

/** What a body goes on as, whatever it is declared as: Fastify reads no type that it does not know, or that is none. */
export const pictureBodyType = 'application/octet-stream'

/** By which programs send the same: names of old browsers and cameras, and those that say nothing of it. */
const otherNames = new Set([
  ...['image/jpg', 'image/pjpeg', 'image/jfif', 'image/pjp', 'image/x-jpeg', 'image/x-jpg', 'image/x-png'],
  ...['image/*', 'application/octet-stream', 'binary/octet-stream', 'application/jpeg', 'application/jpg'],
])

const starts = [
  [0xff, 0xd8, 0xff],
  [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a],
]

/**
 * Whether a body that is declared so may be a picture; its bytes decide. None of the names can come from a form of another site.
 *
 * @param type - without parameters, in lower case; `undefined` where none is sent.
 * @param isProgram - a browser always names one, unless a page hides what it sends.
 */
export function mayBePicture(type: string | undefined, isProgram: boolean): boolean {
  if (type === undefined || type === '') return isProgram
  return pictureTypes.includes(type) || otherNames.has(type)
}

/** Whether the bytes begin as a JPEG or PNG does. The decoder looks at the rest, with its own limits. */
export function isPicture(bytes: Uint8Array): boolean {
  return starts.some((start) => start.every((byte, index) => bytes[index] === byte))
}
