import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { npmOutput } from '../npm.mjs'
import { root } from '../root.mjs'
import { PackError } from './pack-error.mjs'

/**
 * Files of this project that belong into a package: what `files` in package.json names, as npm reads it, of that only what git knows or
 * the build makes today. What lies about in a folder, or is left of an older build, stays out.
 *
 * @returns paths relative to the root, with `package.json`, and those that were left out.
 */
export function ownFiles() {
  const answer = JSON.parse(npmOutput(['pack', '--dry-run', '--json', '--ignore-scripts'], root))
  const [report] = Array.isArray(answer) ? answer : Object.values(answer)
  const known = new Set(git(['ls-files', '-z']).split('\0'))
  const belongs = (path) => (path.startsWith('dist/') ? isBuilt(path) : known.has(path))
  const files = report.files.map(({ path }) => path)
  return { files: files.filter(belongs), leftOut: files.filter((path) => !belongs(path)) }
}

/** Changes that no commit has, one line each as `git status --short` has them. */
export function uncommitted() {
  return git(['status', '--short', '--untracked-files=normal'])
    .split('\n')
    .filter((line) => line !== '')
}

/** The commit that is packed, and its time in seconds. */
export function commit() {
  const [id, seconds] = git(['log', '-1', '--format=%H %ct']).trim().split(' ')
  return { id, seconds: Number(seconds) }
}

/** What the compiler writes has its source; the page and the inventory are written whole. */
function isBuilt(path) {
  const source = /^dist\/(.+?)(?:\.d\.ts|\.js)$/.exec(path)?.[1]
  if (path.startsWith('dist/web/') || source === undefined) return true
  return existsSync(join(root, 'src', `${source}.ts`))
}

function git(args) {
  const { status, stdout, stderr, error } = spawnSync('git', args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 ** 2,
  })
  if (status === 0) return stdout
  throw new PackError(
    `git tells which files belong into the package, and it failed: ${(stderr || error?.message || '').trim()}`,
  )
}
