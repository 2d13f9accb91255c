import { spawnSync } from 'node:child_process'
import { PackError } from './pack-error.mjs'

/**
 * Writes the folder `package` inside of `parent` as a tarball for npm. The same files give the same bytes: npm's own `pack` would
 * leave out of bundled packages what they do not publish, and ours are trimmed already.
 *
 * @param seconds - since 1970, the time of every file.
 * @throws PackError where it cannot be written
 */
export function writeTarball(parent, path, seconds) {
  const options = ['--sort=name', `--mtime=@${seconds}`, '--owner=0', '--group=0', '--numeric-owner']
  const modes = '--mode=u+rwX,go+rX,go-w'
  const { status, stderr, error } = spawnSync(
    'tar',
    ['--create', '--gzip', '--file', path, ...options, modes, '--directory', parent, 'package'],
    { encoding: 'utf8' },
  )
  if (status === 0) return
  const why = (stderr || error?.message || '').trim()
  throw new PackError(`the tarball could not be written (GNU tar is needed): ${why}`)
}
