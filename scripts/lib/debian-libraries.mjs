import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onPath } from './system-tools.mjs'

/**
 * Downloads packages of a Debian release, also for another architecture, and unpacks them into a folder: nothing is installed.
 *
 * @param folder - holds them, and what apt needs meanwhile.
 * @param wanted - `release`, `packages`, and `architecture` where it is not that of this machine.
 * @returns the root of what was unpacked; undefined where this is no Debian, or they cannot be fetched
 */
export function debianLibraries(folder, { release, packages, architecture }, say) {
  const mirror = debianMirror()
  if (mirror === undefined) return undefined
  say(`fetching ${packages.join(' ')} of Debian ${release} (apt-get download) ...`)
  for (const name of ['lists/partial', 'cache/archives/partial', 'root'])
    mkdirSync(join(folder, name), { recursive: true })
  const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg'
  writeFileSync(join(folder, 'sources.list'), `deb [signed-by=${keyring}] ${mirror} ${release} main\n`)
  const apart = {
    'Dir::Etc::sourcelist': join(folder, 'sources.list'),
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::State::lists': join(folder, 'lists'),
    'Dir::Cache': join(folder, 'cache'),
    'APT::Sandbox::User': 'root',
    ...(architecture && { 'APT::Architecture': architecture, 'APT::Architectures': architecture }),
  }
  const options = Object.entries(apart).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  const fetched =
    run('apt-get', [...options, 'update']) !== undefined &&
    run('apt-get', [...options, 'download', ...packages], { cwd: folder }) !== undefined
  if (!fetched) return undefined
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.deb')))
    run('dpkg-deb', ['-x', join(folder, file), join(folder, 'root')])
  for (const name of ['lists', 'cache']) rmSync(join(folder, name), { recursive: true, force: true })
  return join(folder, 'root')
}

/** The mirror that this system itself uses; undefined on systems that are not Debian. */
function debianMirror() {
  if (!onPath('apt-get') || !onPath('dpkg-deb')) return undefined
  const targets =
    run('apt-get', ['indextargets', '--format', '$(ORIGIN) $(REPO_URI)', 'Created-By: Packages']) ?? ''
  const own = targets.split('\n').find((line) => line.startsWith('Debian ') && !line.includes('security'))
  return own?.split(' ')[1]
}

function run(command, args, options = {}) {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', ...options })
  if (status === 0) return stdout
  process.stderr.write(`${stdout ?? ''}${stderr ?? ''}`)
  return undefined
}
