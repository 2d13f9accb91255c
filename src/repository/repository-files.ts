import { existsSync, lstatSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { nearest } from '../config/suggest.js'
import { isThere } from '../lifecycle/system-limit.js'
import { ModelConfigError, ModelNotFoundError } from './errors.js'
import { folderReason, repositoryError } from './repository-folder.js'
import { repositoryNames } from './repository-names.js'

const plainName = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/
const versionName = /^[1-9]\d{0,14}$/

/** More files in one model's folder are not looked at: it is no model. */
const maxFiles = 10_000

/** Names that can be a folder of a repository: no separators, no leading dot. */
export function isModelName(name: string): boolean {
  return plainName.test(name)
}

/** Names that a file may have that a client sends. */
export function isFileName(name: string): boolean {
  return plainName.test(name)
}

export function isVersion(name: string): boolean {
  return versionName.test(name)
}

/** A repository, or several: of models with one name the first counts. */
export type Repositories = string | readonly string[]

/** A folder that looks like a model. */
export type ModelFolder = Readonly<{
  name: string
  repository: string
  /** Where models are looked for that its configuration names. */
  repositories: Repositories
  dir: string
  /** Path of its configuration; it need not be there. */
  configFile: string
}>

/** What the repositories hold. */
export type RepositoryScan = Readonly<{
  folders: ReadonlyMap<string, ModelFolder>
  /** Names that more than one repository has, with the sentence that names the folders. */
  ambiguous: ReadonlyMap<string, string>
}>

/**
 * Looks for models in all repositories; one that cannot be read holds none, and `unreadable` is told.
 *
 * @param configName - a model that has `configs/<configName>.pbtxt` is configured by it, the others by `config.pbtxt`.
 */
export function scanRepositories(
  repositories: readonly string[],
  unreadable: (repository: string, error: unknown) => void,
  configName?: string,
): RepositoryScan {
  const found = new Map<string, ModelFolder[]>()
  for (const repository of repositories)
    for (const name of foldersOf(repository, unreadable))
      found.set(name, [...(found.get(name) ?? []), modelFolder(name, repository, repositories, configName)])
  const folders = new Map<string, ModelFolder>()
  const ambiguous = new Map<string, string>()
  const names = repositoryNames(repositories)
  for (const [name, places] of found) {
    const [only, ...others] = places
    if (only !== undefined && others.length === 0) folders.set(name, only)
    else
      ambiguous.set(
        name,
        `model '${name}' is not unique across all model repositories: ${places.map(({ repository }) => `${names.get(repository)}/${name}`).join(' and ')}`,
      )
  }
  return { folders, ambiguous }
}

export function modelFolder(
  name: string,
  repository: string,
  repositories: Repositories = repository,
  configName?: string,
): ModelFolder {
  const dir = join(repository, name)
  const custom = configName === undefined ? undefined : join(dir, 'configs', `${configName}.pbtxt`)
  const configFile = custom !== undefined && existsSync(custom) ? custom : join(dir, 'config.pbtxt')
  return { name, repository, repositories, dir, configFile }
}

function foldersOf(
  repository: string,
  unreadable: (repository: string, error: unknown) => void,
): readonly string[] {
  try {
    return namesIn(repository)
  } catch (error) {
    unreadable(repository, error)
    return []
  }
}

/** Names of the folders that look like models, sorted. @throws what the file system throws */
function namesIn(repository: string): readonly string[] {
  return readdirSync(repository)
    .filter(
      (name) =>
        isModelName(name) &&
        statSync(join(repository, name), { throwIfNoEntry: false })?.isDirectory() === true,
    )
    .sort()
}

/** Names of the folders that look like models, sorted. @throws ModelNotFoundError if a repository itself cannot be read. */
export function modelNames(repositories: Repositories): readonly string[] {
  const names = [repositories].flat().flatMap((repository) => {
    try {
      return namesIn(repository)
    } catch (error) {
      throw repositoryError(new Map([[repository, folderReason(repository, error)]]))
    }
  })
  return [...new Set(names)].sort()
}

/** @throws ModelNotFoundError that says which models there are */
export function findFolder(repositories: Repositories, name: string): ModelFolder {
  const repository = repositoryWith(repositories, name)
  if (isModelName(name) && isThere(join(repository, name))) return modelFolder(name, repository, repositories)
  const names = modelNames(repositories)
  throw new ModelNotFoundError(
    `model "${name}" is not in ${[repositories].flat().join(' or ')}`,
    names.length === 0 ? 'The repository is empty.' : `${meant(name, names)}It has: ${names.join(', ')}.`,
  )
}

function meant(name: string, names: readonly string[]): string {
  const near = nearest(name, names)
  return near === undefined ? '' : `Did you mean ${near}? `
}

/** The first of several repositories that has a model of that name; the first of all where none has it. */
export function repositoryWith(repositories: Repositories, name: string): string {
  const all = [repositories].flat()
  const found = all.find((dir) => isModelName(name) && existsSync(join(dir, name)))
  return found ?? all[0] ?? ''
}

/** The repositories, the one that has the model first: its steps are looked for there before the others. */
export function repositoriesFrom(repositories: Repositories, name: string): readonly string[] {
  const first = repositoryWith(repositories, name)
  return [first, ...[repositories].flat().filter((dir) => dir !== first)]
}

/** Every file of a model by its path in the model's folder, with its bytes and what else changes when the file does. */
export type FolderPrint = ReadonlyMap<string, string>

/**
 * Reads which files a model's folder has, without opening them.
 *
 * @throws ModelConfigError for a link that leads out of the repository; what the file system throws.
 */
export function printFolder({ dir, repository }: Pick<ModelFolder, 'dir' | 'repository'>): FolderPrint {
  const print = new Map<string, string>()
  const root = realpathSync(repository)
  const visit = (folder: string, depth: number): void => {
    for (const name of readdirSync(folder).sort()) {
      const path = join(folder, name)
      if (lstatSync(path).isSymbolicLink()) checkLink(path, root)
      const stat = statSync(path)
      if (stat.isDirectory()) {
        if (depth < 8) visit(path, depth + 1)
      } else print.set(relative(dir, path), `${stat.size}:${stat.mtimeMs}:${stat.ino}`)
      if (print.size > maxFiles)
        throw new ModelConfigError(
          `${dir} has more than ${maxFiles} files`,
          'Keep only what the model needs.',
        )
    }
  }
  checkLink(dir, root)
  visit(dir, 0)
  return print
}

function checkLink(path: string, root: string): void {
  const target = realpathSync(path)
  if (target !== root && !target.startsWith(root + sep))
    throw new ModelConfigError(
      `${path} is a link that leads out of the model repository`,
      'Put the file itself there, or link to a place inside the repository.',
    )
}

/** Also those of the folder that the model's files are in, where that is another one's. */
export function printModel(folder: ModelFolder, filesDir: string): FolderPrint {
  const own = printFolder(folder)
  if (filesDir === folder.dir) return own
  return new Map([...printFolder({ ...folder, dir: filesDir }), ...own])
}

/** What the files hold, together. */
export function bytesOf(print: FolderPrint): number {
  return [...print.values()].reduce((sum, file) => sum + Number.parseInt(file, 10), 0)
}

/** Whether two looks saw the same files. */
export function samePrint(a: FolderPrint, b: FolderPrint): boolean {
  return a.size === b.size && [...a].every(([path, print]) => b.get(path) === print)
}

/** The files one version depends on: those of its folder, and those beside the version folders but for configurations. */
export function printOfVersion(print: FolderPrint, version: number): FolderPrint {
  return new Map(
    [...print].filter(([path]) => {
      const [top = '', ...inner] = path.split(sep)
      if (inner.length === 0) return top !== 'config.pbtxt'
      return top === String(version) || (top !== 'configs' && !isVersion(top))
    }),
  )
}
