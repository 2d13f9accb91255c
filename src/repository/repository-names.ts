import { resolve, sep } from 'node:path'

/**
 * What clients are told of folders: no more of their paths than tells them apart. `/srv/a/models` and `/srv/b/models` are `a/models` and
 * `b/models`; a folder alone is `models`.
 */
export function repositoryNames(dirs: readonly string[]): ReadonlyMap<string, string> {
  const paths = [...new Set(dirs)].map((dir) => ({ dir, parts: resolve(dir).split(sep) }))
  const tail = (parts: readonly string[], count: number): string => parts.slice(-count).join('/')
  return new Map(
    paths.map(({ dir, parts }) => {
      let count = 1
      const isShared = (): boolean =>
        paths.some((other) => other.dir !== dir && tail(other.parts, count) === tail(parts, count))
      while (count < parts.length && isShared()) count += 1
      return [dir, tail(parts, count)]
    }),
  )
}
