/** How long a browser may take to begin with a file that it saves. */
const beginsMs = 10_000

/** Has the browser save something as a file, in its own way. */
export function saveFile(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob)
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), beginsMs)
}
