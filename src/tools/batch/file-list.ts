import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { finished } from 'node:stream/promises'
import { byTrueName } from '../../lifecycle/system-limit.js'

/** How often the number of files is told while they are listed. */
const tellEvery = 1_000

/**
 * Writes the names of all files of a batch to disk, one JSON string a line: what is found later or goes away is not of this run, and a list
 * from standard input is there when the run goes on.
 *
 * @param listed - told now and then how many there are.
 * @returns how many there are.
 * @throws what `names` throws; SystemLimitError
 */
export async function writeFileList(
  path: string,
  names: AsyncIterable<string>,
  listed: (files: number) => void,
): Promise<number> {
  const beside = `${path}.tmp`
  const stream = createWriteStream(beside, { flush: true })
  let failure: Error | undefined
  stream.on('error', (error) => (failure = error))
  let files = 0
  try {
    for await (const name of names) {
      if (failure !== undefined) break
      files += 1
      if (!stream.write(`${JSON.stringify(name)}\n`)) await once(stream, 'drain')
      if (files % tellEvery === 0) listed(files)
    }
    stream.end()
    await finished(stream)
    await rename(beside, path)
  } catch (error) {
    stream.destroy()
    await rm(beside, { force: true }).catch(() => undefined)
    throw failure === undefined ? error : byTrueName('the list of files cannot be kept', failure)
  }
  listed(files)
  return files
}

export type ListedFile = Readonly<{ index: number; name: string }>

/** The files of a list in its order, read as they are taken. @param from - number of the first that is wanted. */
export async function* readFileList(path: string, from: number): AsyncGenerator<ListedFile, void> {
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Infinity })
  let index = 0
  try {
    for await (const line of lines) {
      if (index >= from) yield { index, name: JSON.parse(line) as string }
      index += 1
    }
  } finally {
    lines.close()
  }
}
