import { isUtf8 } from 'node:buffer'
import { readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { stringsOf } from '../tensors/elements.js'
import { elementCount, type Tensor } from '../tensors/tensor.js'
import { inTurns, type Pieces } from '../lifecycle/in-turns.js'
import { isThere } from '../lifecycle/system-limit.js'

/**
 * A tensor whose data lie in a file beside a model. The loop goes on while a large one is read.
 *
 * @param like - a tensor of the same kind.
 * @param takesText - the model takes strings that are UTF-8 without a NUL alone.
 * @param wrong - makes an error of what is the matter with the file.
 */
export async function tensorFromFile(
  like: Tensor,
  { dir, file, takesText }: Readonly<{ dir: string; file: string; takesText: boolean }>,
  wrong: (problem: string) => Error,
): Promise<Tensor> {
  if (basename(file) !== file) throw wrong(`"${file}" is not a plain file name`)
  const path = join(dir, file)
  if (!isThere(path)) throw wrong(`there is no file ${path}`)
  const isText = like.datatype === 'BYTES'
  const { size } = await stat(path)
  if (!isText && size !== like.data.byteLength)
    throw wrong(`"${file}" has ${size} bytes, but ${like.data.byteLength} are expected`)
  const tensor = { ...like, data: await readFile(path) }
  const problem = isText ? await inTurns(stringsProblem(tensor, takesText)) : undefined
  if (problem !== undefined) throw wrong(`"${file}" ${problem}`)
  return tensor
}

/** So much is looked at in one piece, and something for each string. */
const pieceBytes = 256 * 1024
const stringCost = 64

function* stringsProblem({ data, shape }: Tensor, takesText: boolean): Pieces<string | undefined> {
  const expected = elementCount(shape)
  let found = 0
  let bytes = 0
  let areTexts = true
  let looked = 0
  for (const each of stringsOf(data)) {
    found += 1
    bytes += 4 + each.byteLength
    if (takesText) areTexts &&= isUtf8(each) && !each.includes(0)
    looked += stringCost + each.byteLength
    if (looked < pieceBytes) continue
    looked = 0
    yield
  }
  if (bytes !== data.length || found !== expected)
    return `does not hold ${expected} strings, each behind its length in four bytes`
  return areTexts ? undefined : 'has a string that is not UTF-8, or has a NUL, which ONNX Runtime cannot take'
}
