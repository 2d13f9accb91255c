import { constants, lstatSync, readlinkSync, realpathSync } from 'node:fs'
import { access, readdir } from 'node:fs/promises'
import { systemLimit } from '../lifecycle/system-limit.js'
import { ModelNotFoundError } from './errors.js'

/** Repository -> why it cannot be read. */
export type UnreadableRepositories = ReadonlyMap<string, string>

/** Why a folder of models cannot be read; `undefined` if it can. Never rejects. */
export async function unreadableReason(repository: string): Promise<string | undefined> {
  try {
    await readdir(repository)
    // Names can be listed without this right, but nothing behind them opened.
    await access(repository, constants.X_OK)
    return undefined
  } catch (error) {
    return folderReason(repository, error)
  }
}

/** What the file system says of a folder of models, in words. */
export function folderReason(repository: string, error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  switch (code) {
    case 'ENOENT':
      return linkTarget(repository) ?? 'no such folder'
    case 'ENOTDIR':
      return 'it is a file, not a folder'
    case 'EACCES':
    case 'EPERM':
      return 'this user may not read it'
    case 'ELOOP':
      return 'it is a link that leads back to itself'
    default:
      return systemLimit(error)?.reason ?? message
  }
}

function linkTarget(path: string): string | undefined {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return undefined
  return `it is a link to ${readlinkSync(path)}, which does not exist`
}

/** Those of the repositories that cannot be read. */
export async function unreadableOf(repositories: readonly string[]): Promise<UnreadableRepositories> {
  const reasons = await Promise.all(
    repositories.map(async (repository) => [repository, await unreadableReason(repository)] as const),
  )
  return new Map(
    reasons.flatMap(([repository, reason]) => (reason === undefined ? [] : [[repository, reason]])),
  )
}

/** @throws ModelNotFoundError `GANTRY_MODEL_NOT_FOUND` naming every repository that cannot be read */
export async function checkRepositories(repositories: readonly string[]): Promise<void> {
  const unreadable = await unreadableOf(repositories)
  if (unreadable.size > 0) throw repositoryError(unreadable)
}

export function repositoryError(unreadable: UnreadableRepositories): ModelNotFoundError {
  const problems = [...unreadable].map(([repository, reason]) => unreadableText(repository, reason))
  return new ModelNotFoundError(problems.join('; '), repositoryHint)
}

export function unreadableText(repository: string, reason: string): string {
  return `cannot read model repository ${repository}: ${reason}`
}

/** What to do about a repository that cannot be read. */
export const repositoryHint =
  'Set models.repository to a folder of models that this user may read; a path in a pipeline file starts at the folder of the file.'

/** The same folder given twice, also by another path, counts once: the first stays. */
export function distinctRepositories(repositories: readonly string[]): readonly string[] {
  const places = new Map<string, string>()
  for (const repository of repositories) {
    const place = placeOf(repository)
    if (!places.has(place)) places.set(place, repository)
  }
  return [...places.values()]
}

function placeOf(repository: string): string {
  try {
    return realpathSync(repository)
  } catch {
    return repository
  }
}
