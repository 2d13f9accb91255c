const starts: Readonly<Record<string, readonly number[]>> = {
  'image/jpeg': [0xff, 0xd8, 0xff],
  'image/png': [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a],
}

/** Whether the bytes begin as a picture of that type does. The decoder looks at the rest, with its own limits. */
export function isPicture(mediaType: string, bytes: Uint8Array): boolean {
  const start = starts[mediaType]
  return start !== undefined && start.every((byte, index) => bytes[index] === byte)
}
