import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join, normalize } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import picomatch from 'picomatch'
import { isS3Url } from '../../../config/s3-url.js'
import { mediaKind } from '../../../sources/media-names.js'
import { BatchInputError } from '../batch-errors.js'
import type { S3Store } from './s3-store.js'
import { walkFolder } from './walk-folder.js'

export type InputDeps = Readonly<{
  /** What `-` reads. */
  stdin: Readable
  /** Opened when the first `s3://` comes. */
  s3: () => S3Store
}>

/**
 * The files that inputs name, one by one: pictures and videos, folders with all below them, globs, lists (`@FILE`, one name a line; `-`:
 * standard input), and `s3://BUCKET/KEY`, a prefix or a glob of keys. Of folders, prefixes and globs the pictures and videos alone.
 *
 * @throws BatchInputError for one that is not there
 */
export async function* listInputs(inputs: readonly string[], deps: InputDeps): AsyncGenerator<string, void> {
  for (const input of inputs) {
    if (input === '-') yield* linesOf(deps.stdin, 'standard input', deps)
    else if (input.startsWith('@')) yield* linesOf(createReadStream(input.slice(1)), input.slice(1), deps)
    else if (isS3Url(input)) yield* inStore(input, deps.s3())
    else yield* onDisk(input)
  }
}

async function* linesOf(stream: Readable, name: string, deps: InputDeps): AsyncGenerator<string, void> {
  let failure: NodeJS.ErrnoException | undefined
  const lines = createInterface({ input: stream, crlfDelay: Infinity })
  // Of the file, whoever of the two tells it: the lines end then.
  const failed = (error: Error) => {
    failure = error
    lines.close()
  }
  stream.on('error', failed)
  lines.on('error', failed)
  for await (const text of lines) {
    // A byte order mark is white space here.
    const line = text.trim()
    if (line === '') continue
    if (line.includes('\0'))
      throw new BatchInputError(
        `list ${name} is no text in UTF-8: its line "${line.replaceAll('\0', '').slice(0, 40)}" has zeros in it, as UTF-16 of Windows has`,
        'Save it as UTF-8, with one path a line.',
      )
    if (isS3Url(line)) yield* inStore(line, deps.s3())
    else yield* named(line)
  }
  if (failure !== undefined)
    throw new BatchInputError(
      `list ${name} cannot be read: ${failure.code ?? failure.message}`,
      'Name a text file with one path a line, as @FILE.',
      { cause: failure },
    )
}

/** One that is not there is told when its turn comes, as an error of that one. */
async function* named(path: string): AsyncGenerator<string, void> {
  if (mediaKind(path) === undefined && (await kindOnDisk(path)) === 'folder')
    yield* below(path, walkFolder(path))
  else yield path
}

async function* onDisk(input: string): AsyncGenerator<string, void> {
  const kind = await kindOnDisk(input)
  if (kind === 'file') yield input
  else if (kind === 'folder') yield* below(input, walkFolder(input))
  else if (isGlob(input)) yield* matching(input)
  else
    throw new BatchInputError(
      `input "${input}" is not there`,
      'Name a picture, a video, a folder, a glob, @LIST, - for standard input, or s3://BUCKET/PREFIX.',
    )
}

async function kindOnDisk(path: string): Promise<'file' | 'folder' | undefined> {
  try {
    return (await stat(path)).isDirectory() ? 'folder' : 'file'
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ENAMETOOLONG') return undefined
    throw new BatchInputError(`input "${path}" cannot be read: ${code}`, 'See that this user may read it.', {
      cause: error,
    })
  }
}

async function* below(folder: string, found: AsyncIterable<string>): AsyncGenerator<string, void> {
  for await (const path of found) if (mediaKind(path) !== undefined) yield join(folder, path)
}

function isGlob(text: string): boolean {
  return picomatch.scan(text).isGlob
}

/** The folder where a pattern begins, and what is below it. */
function takenApart(pattern: string): Readonly<{ base: string; glob: string; levels: number | undefined }> {
  const { base, glob } = picomatch.scan(normalize(pattern))
  const levels = /\*\*|\{[^}]*\//.test(glob) ? undefined : glob.split('/').length
  return { base, glob, levels }
}

async function* matching(pattern: string): AsyncGenerator<string, void> {
  const { base, glob, levels } = takenApart(pattern)
  const matches = picomatch(glob)
  const folder = base === '' ? '.' : base
  if ((await kindOnDisk(folder)) !== 'folder')
    throw new BatchInputError(
      `the glob "${pattern}" begins in ${folder}, which is no folder`,
      'Write it anew.',
    )
  for await (const path of walkFolder(folder, levels))
    if (mediaKind(path) !== undefined && matches(path)) yield join(folder, path)
}

/** Keys may hold any letter; only the end of a URL says whether one of them is meant. */
async function* inStore(url: string, store: S3Store): AsyncGenerator<string, void> {
  const place = store.parse(url)
  const { key } = place
  const root = url.slice(0, url.length - key.length).replace(/\/?$/, '/')
  const named = (found: string) => `${root}${found}`
  if (isGlob(key)) {
    const { base, glob } = picomatch.scan(key)
    const matches = picomatch(glob)
    const prefix = base === '' ? '' : `${base}/`
    for await (const found of store.list(place, prefix))
      if (mediaKind(found) !== undefined && matches(found.slice(prefix.length))) yield named(found)
  } else if (mediaKind(key) !== undefined) yield url
  else
    for await (const found of store.list(place, key)) if (mediaKind(found) !== undefined) yield named(found)
}
