import { createHash } from 'node:crypto'
import type { ListedObject } from '../object-store.js'
import { ObjectStoreError } from '../s3-errors.js'

/** An object and the file that it becomes. */
export type MirroredFile = Readonly<{
  object: ListedObject
  /** Relative to the folder of the repository, with slashes. */
  path: string
  /** Names object and content: another one when either changes. */
  id: string
}>

/** More are no repository of models. */
const mostFiles = 100_000
/** Longest name of a file that common file systems take, and longest path. */
const [longestName, longestPath] = [255, 1_000]

/**
 * The files that the objects of a prefix become. What belongs to no model is left out: objects beside the folders of models, names that
 * begin with a dot, and the objects of no bytes by which some tools mark folders.
 *
 * @param where - the prefix, for people, with a slash at its end.
 * @param prefix - of the keys, empty or with a slash at its end.
 * @throws ObjectStoreError naming a key that cannot be a file, or would be the file of another one
 */
export async function listedFiles(
  objects: AsyncIterable<ListedObject>,
  where: string,
  prefix: string,
): Promise<readonly MirroredFile[]> {
  const files: MirroredFile[] = []
  for await (const object of objects) {
    const path = object.key.slice(prefix.length)
    const fault = faultOf(path)
    if (fault !== undefined)
      throw new ObjectStoreError(
        `object ${JSON.stringify(object.key)} of ${where} cannot be a file: ${fault}`,
        'Delete it, or give it another name: keys are MODEL/VERSION/FILE.',
      )
    if (isOfModel(path)) files.push({ object, path, id: idOf(object) })
    if (files.length > mostFiles)
      throw new ObjectStoreError(
        `${where} has more than ${mostFiles} objects`,
        'Name the prefix that holds the models alone.',
      )
  }
  if (files.length === 0)
    throw new ObjectStoreError(
      `${where} holds no models: no object there is named MODEL/VERSION/FILE or MODEL/config.pbtxt`,
      'See that bucket and prefix are spelled right, and upload the models.',
    )
  checkPlaces(files, where)
  return files.sort((a, b) => (a.path < b.path ? -1 : 1))
}

function faultOf(path: string): string | undefined {
  const names = path.endsWith('/') ? path.slice(0, -1).split('/') : path.split('/')
  if (path === '') return undefined
  if (names.some((name) => name === '..' || name === '.')) return 'it leads out of its folder by dots'
  if (names.includes('')) return 'a name between its slashes is empty'
  // eslint-disable-next-line no-control-regex -- a key may hold any letter, and these end up in logs and on terminals
  if (/[\u0000-\u001f\u007f\\]/.test(path)) return 'it has a backslash or a control character in it'
  if (names.some((name) => Buffer.byteLength(name) > longestName)) return 'a name in it is too long'
  return Buffer.byteLength(path) > longestPath ? 'it is too long' : undefined
}

function isOfModel(path: string): boolean {
  return path.includes('/') && !path.endsWith('/') && !path.startsWith('.')
}

/** @throws ObjectStoreError */
function checkPlaces(files: readonly MirroredFile[], where: string): void {
  const known = new Map<string, string>()
  const take = (path: string, kind: 'file' | 'folder', key: string) => {
    const place = path.toLowerCase()
    const mine = `${kind} ${path}`
    const other = known.get(place)
    if (other !== undefined && (other !== mine || kind === 'file'))
      throw new ObjectStoreError(
        `object ${JSON.stringify(key)} of ${where} collides: ${mine} cannot be beside ${other}`,
        'Rename one of the two: names must differ in more than case, and a file is no folder.',
      )
    known.set(place, mine)
  }
  for (const { path, object } of files) {
    const names = path.split('/')
    for (let depth = 1; depth < names.length; depth += 1)
      take(names.slice(0, depth).join('/'), 'folder', object.key)
    take(path, 'file', object.key)
  }
}

function idOf({ key, etag, bytes }: ListedObject): string {
  return createHash('sha256')
    .update(JSON.stringify([key, etag, bytes]))
    .digest('hex')
}

/** Names what files there are, with their contents. */
export function printOfFiles(files: readonly MirroredFile[]): string {
  const hash = createHash('sha256')
  for (const { path, id } of files) hash.update(JSON.stringify([path, id]))
  return hash.digest('hex')
}
