import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { elementCount } from '../../inference/tensor-type.js'
import { isThere } from '../../lifecycle/system-limit.js'
import { stringsOf } from '../elements.js'
import type { Tensor } from '../tensor.js'

/**
 * A tensor whose data lie in a file beside a model.
 *
 * @param like - a tensor of the same kind.
 * @param takesText - the model takes strings that are UTF-8 alone.
 * @param wrong - makes an error of what is the matter with the file.
 */
export function tensorFromFile(
  like: Tensor,
  { dir, file, takesText }: Readonly<{ dir: string; file: string; takesText: boolean }>,
  wrong: (problem: string) => Error,
): Tensor {
  if (basename(file) !== file) throw wrong(`"${file}" is not a plain file name`)
  const path = join(dir, file)
  if (!isThere(path)) throw wrong(`there is no file ${path}`)
  const tensor = { ...like, data: readFileSync(path) }
  const problem = like.datatype === 'BYTES' ? stringsProblem(tensor, takesText) : sizeProblem(tensor, like)
  if (problem !== undefined) throw wrong(`"${file}" ${problem}`)
  return tensor
}

function sizeProblem({ data }: Tensor, like: Tensor): string | undefined {
  if (data.length === like.data.length) return undefined
  return `has ${data.length} bytes, but ${like.data.length} are expected`
}

function stringsProblem({ data, shape }: Tensor, takesText: boolean): string | undefined {
  const strings = [...stringsOf(data)]
  const bytes = strings.reduce((sum, each) => sum + 4 + each.byteLength, 0)
  const expected = elementCount(shape)
  if (bytes !== data.length || strings.length !== expected)
    return `does not hold ${expected} strings, each behind its length in four bytes`
  return takesText && !strings.every((each) => isUtf8(each)) ? 'has a string that is not UTF-8' : undefined
}
