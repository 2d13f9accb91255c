import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { tritonClients } from './triton-clients.mjs'

/** Brings a program of its own, built from ffmpeg's newest release; systems have older ones. */
const carrier = 'imageio-ffmpeg==0.8.1'

/** A folder for `PATH` that has that `ffmpeg`; undefined where it is not installed. */
export function newestFfmpeg() {
  const folder = join(cacheFolder(), 'bin')
  return existsSync(join(folder, 'ffmpeg')) ? folder : undefined
}

/** Installs it from PyPI by the Python of {@link tritonClients}. Returns a line for each thing that is missing. */
export function ensureNewestFfmpeg(say) {
  if (newestFfmpeg() !== undefined) return []
  const missing = [`missing: ${carrier} (tests of cameras with the newest ffmpeg)`]
  const python = tritonClients()?.python
  if (python === undefined) return missing
  const folder = cacheFolder()
  rmSync(folder, { recursive: true, force: true })
  say(`installing ${carrier} (pip) ...`)
  const options = ['--quiet', '--no-deps', '--only-binary=:all:', '--target', folder]
  const { status, stderr } = spawnSync(python, ['-m', 'pip', 'install', ...options, carrier], {
    encoding: 'utf8',
  })
  const binaries = join(folder, 'imageio_ffmpeg/binaries')
  const name = status === 0 ? readdirSync(binaries).find((file) => file.startsWith('ffmpeg-')) : undefined
  if (name === undefined) {
    process.stderr.write(stderr ?? '')
    return missing
  }
  mkdirSync(join(folder, 'bin'))
  symlinkSync(join(binaries, name), join(folder, 'bin/ffmpeg'))
  return []
}

function cacheFolder() {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
  return join(cache, 'gantry-test', carrier.replace('==', '-'))
}
