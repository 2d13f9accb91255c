import { ConfigError, type ConfigProblem } from './config-error.js'
import { EncodingError, readTextFile, textOfBytes } from './text-file.js'
import { standardInput, standardInputBytes, standardInputName } from './standard-input.js'

/** The text of a pipeline file, or of standard input. @throws ConfigError `GANTRY_CONFIG` that says why it cannot be read. */
export function readPipelineText(path: string): string {
  const isStandardInput = path === standardInput
  try {
    return isStandardInput ? textOfBytes(standardInputBytes()) : readTextFile(path)
  } catch (error) {
    if (error instanceof ConfigError) throw error
    const file = isStandardInput ? standardInputName : path
    throw new ConfigError([{ file, path: '', ...unreadable(error as NodeJS.ErrnoException) }])
  }
}

/** What is wrong with a file that could not be read, and what to do. */
export function unreadable(error: NodeJS.ErrnoException): Pick<ConfigProblem, 'message' | 'hint'> {
  if (error instanceof EncodingError) return { message: `cannot be read: ${error.message}` }
  const { code, message } = error
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return { message: 'no such file', hint: 'pipelines/ has examples' }
    case 'EISDIR':
      return { message: 'is a folder', hint: 'name the pipeline file in it' }
    case 'EACCES':
    case 'EPERM':
      return {
        message: 'this user may not read it',
        hint: 'allow it with chmod or chown, or run as its owner',
      }
    default:
      return { message: `cannot be read: ${message}`, hint: 'pipelines/ has examples' }
  }
}
