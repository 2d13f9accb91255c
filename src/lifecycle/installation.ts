import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Folder of the installation, with a slash at its end: the same from `src/` and from `dist/`. */
export const installation = fileURLToPath(new URL('../../', import.meta.url))

/** Version of this package. */
export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(`${installation}package.json`, 'utf8')) as { version: string }
  return version
}
