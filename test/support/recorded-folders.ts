import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { ErrorRecord } from '../../src/errors.js'

/** Text; or bytes of the table; or as many zeros; or a link that leads out of the repository. */
type RecordedFile =
  string | Readonly<{ onnx: string }> | Readonly<{ zeros: number }> | Readonly<{ link: true }>

/** What one side made of a folder; paths begin with `<repository>`. */
export type Answer = Readonly<{ error: ErrorRecord } | Record<string, unknown>>

/** A folder of a model, and what the reader for cameras and that for API clients said of it, when they were two. */
export type RecordedFolder = Readonly<{
  name: string
  /** By path in the repository; a path that ends with `/` is a folder. */
  files: Readonly<Record<string, RecordedFile | null>>
  /** A configuration that a client sent in the place of the file's. */
  sent?: string
  cameras?: Answer
  clients: Answer
}>

type Recording = Readonly<{ onnx: Readonly<Record<string, string>>; folders: readonly RecordedFolder[] }>

const recording = JSON.parse(
  readFileSync(new URL('../golden/model-folders.json', import.meta.url), 'utf8'),
) as Recording

/** Every folder that a test read a model from then, but for those that differ in the content of large files alone. */
export const recordedFolders = recording.folders

/** Writes the folder, and others that it names, into a repository. */
export function writeFolder({ files }: Pick<RecordedFolder, 'files'>, repository: string): void {
  for (const [path, content] of Object.entries(files)) {
    const at = join(repository, path)
    mkdirSync(path.endsWith('/') ? at : dirname(at), { recursive: true })
    if (content === null) continue
    if (typeof content === 'string') writeFileSync(at, content)
    else if ('link' in content) symlinkSync(dirname(repository), at)
    else
      writeFileSync(
        at,
        'zeros' in content
          ? new Uint8Array(content.zeros)
          : Buffer.from(recording.onnx[content.onnx] ?? '', 'base64'),
      )
  }
}

/** As it is in JSON, without what is empty, and without the path of the repository. */
export function comparable(answer: unknown, repository: string): unknown {
  return JSON.parse(
    JSON.stringify(answer, (_, value: unknown) => {
      if (value instanceof Map) return Object.fromEntries(value as Map<string, unknown>)
      return isEmpty(value) ? undefined : value
    }).replaceAll(repository, '<repository>'),
  )
}

function isEmpty(value: unknown): boolean {
  return (
    typeof value === 'object' && value !== null && !(value instanceof Map) && Object.keys(value).length === 0
  )
}
