import { ConfigError, type ConfigProblem } from './config-error.js'

/** What `-c` is given for a pipeline that comes by standard input. */
export const standardInput = '-'
/** What it is called in all that is told of it. */
export const standardInputName = '<stdin>'

const mostBytes = 16 * 1024 ** 2
const hint = 'pipe a pipeline file into it: `gantry serve -c - < FILE`'

/** A stream that ends, such as `process.stdin`. */
export type InputStream = AsyncIterable<Uint8Array> & Readonly<{ isTTY?: boolean }>

let held: Uint8Array | undefined

/**
 * Reads standard input to its end, for {@link standardInputBytes}. It can be read once in the life of a process, and is not waited for in a
 * way that would keep signals from being heard.
 *
 * @throws ConfigError `GANTRY_CONFIG` where nobody pipes anything into it, or too much
 */
export async function readStandardInput(open: () => InputStream): Promise<void> {
  const stream = opened(open)
  if (stream.isTTY === true) throw refused({ message: 'is a terminal, where nobody writes a pipeline', hint })
  const chunks: Uint8Array[] = []
  let bytes = 0
  try {
    for await (const chunk of stream) {
      bytes += chunk.byteLength
      if (bytes > mostBytes)
        throw refused({
          message: `has more than ${mostBytes / 1024 ** 2} MiB, which no pipeline has`,
          hint: 'see what writes to it',
        })
      chunks.push(chunk)
    }
  } catch (error) {
    throw error instanceof ConfigError ? error : unreadableInput(error)
  }
  const read = Buffer.concat(chunks)
  if (read.toString('latin1').trim() === '')
    throw refused({
      message: 'is empty',
      hint: 'see whether the command before the pipe failed, or what < names',
    })
  held = read
}

/** @throws ConfigError `GANTRY_CONFIG` where nothing was read */
export function standardInputBytes(): Uint8Array {
  if (held === undefined) throw refused({ message: 'was not read', hint: 'name the pipeline by its file' })
  return held
}

/** Node does not open what is no file, pipe, socket or terminal. */
function opened(open: () => InputStream): InputStream {
  try {
    return open()
  } catch (error) {
    throw unreadableInput(error)
  }
}

function unreadableInput(error: unknown): ConfigError {
  return refused({ message: `cannot be read: ${(error as Error).message}`, hint })
}

function refused(problem: Pick<ConfigProblem, 'message' | 'hint'>): ConfigError {
  return new ConfigError([{ file: standardInputName, path: '', ...problem }])
}
