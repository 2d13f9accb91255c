import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Version of this package; the file lies as far above `src/control/` as above `dist/control/`. */
export function packageVersion(): string {
  const file = fileURLToPath(new URL('../../package.json', import.meta.url))
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
