import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ServingError } from '../../tensors/serving-error.js'
import { isFileName, isVersion, modelFolder, type ModelFolder } from '../../repository/repository-files.js'

/** Files a client sent with a load request, in a folder that only this user can read. */
export type UploadedModel = Readonly<{ folder: ModelFolder; remove(): void }>

/**
 * Writes the files of a load request.
 *
 * @param uploadDir - private to the service.
 * @param files - `<version>/<file name>` to content.
 * @throws ServingError for names that are no version and plain file name
 */
export async function writeUploadedModel(
  uploadDir: string,
  name: string,
  files: ReadonlyMap<string, Uint8Array>,
): Promise<UploadedModel> {
  for (const path of files.keys()) checkPath(name, path)
  mkdirSync(uploadDir, { recursive: true, mode: 0o700 })
  const repository = mkdtempSync(join(uploadDir, `${name}-`))
  const { remove } = uploadedModel(name, repository)
  try {
    const dir = join(repository, name)
    for (const [path, content] of files) {
      const [version = '', file = ''] = path.split('/')
      mkdirSync(join(dir, version), { recursive: true, mode: 0o700 })
      await writeFile(join(dir, version, file), content, { mode: 0o600, flag: 'wx' })
    }
    return uploadedModel(name, repository)
  } catch (error) {
    remove()
    throw error
  }
}

/** One that is there. @param repository - the folder that its folder is in, alone. */
export function uploadedModel(name: string, repository: string): UploadedModel {
  return {
    folder: modelFolder(name, repository),
    remove: () => rmSync(repository, { recursive: true, force: true }),
  }
}

function checkPath(name: string, path: string): void {
  const [version = '', file = '', ...more] = path.split('/')
  if (isVersion(version) && isFileName(file) && more.length === 0) return
  throw new ServingError(
    'INVALID_ARG',
    `failed to load '${name}', '${path.slice(0, 200)}' is not <version>/<file name>`,
  )
}
