/** Position in the stream of one run of the service. */
export function formatCursor(epoch: string, position: number): string {
  return `${epoch}-${position}`
}

/** @param cursor - has the form of `cursorSchema`. */
export function parseCursor(cursor: string): Readonly<{ epoch: string; position: number }> {
  const dash = cursor.lastIndexOf('-')
  return { epoch: cursor.slice(0, dash), position: Number(cursor.slice(dash + 1)) }
}
