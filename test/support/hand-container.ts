import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { until } from './until.js'

const root = join(import.meta.dirname, '../..')

/** What an image says of its process. */
export type ImageSettings = Readonly<{
  entrypoint: readonly string[]
  health: readonly string[]
  user: string
  workdir: string
  env: readonly string[]
}>

/** A folder or file of this machine at a place of the container. */
export type HandMount = Readonly<{ from: string; at: string; readOnly: boolean }>

export type HandContainerOptions = Readonly<{
  image: ImageSettings
  command: readonly string[]
  env: Readonly<Record<string, string>>
  mounts: readonly HandMount[]
  tmpfs: readonly string[]
}>

/** What the last stage of a Dockerfile gives its process; stages that it stands on count where they are of this file. */
export function imageSettings(dockerfile: string, target: string): ImageSettings {
  const stages = dockerfile.replaceAll(/\\\n\s*/g, ' ').split(/^(?=FROM )/m)
  const lines: string[] = []
  for (let name: string | undefined = target; name !== undefined;) {
    const stage = stages.find((text) => text.split('\n')[0]?.endsWith(` AS ${name}`))
    if (stage === undefined) break
    lines.unshift(...stage.split('\n'))
    name = /^FROM (\S+)/.exec(stage)?.[1]
  }
  const all = (pattern: RegExp) => lines.flatMap((line) => pattern.exec(line)?.[1] ?? [])
  return {
    entrypoint: JSON.parse(all(/^ENTRYPOINT (.*)$/).at(-1) ?? '[]') as string[],
    health: JSON.parse(all(/^HEALTHCHECK .*CMD (.*)$/).at(-1) ?? '[]') as string[],
    user: all(/^USER (.*)$/).at(-1) ?? '',
    workdir: all(/^WORKDIR (.*)$/).at(-1) ?? '/',
    env: all(/^ENV (.*)$/).flatMap((line) => line.split(' ')),
  }
}

/**
 * A root of its own that nobody may write: the programs of this machine, this repository as /app, and what is mounted. Then the user of
 * the image, without capabilities and without a way to get any.
 */
const enter = `set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 none "$NEW_ROOT"
cd "$NEW_ROOT"
for name in bin sbin lib lib64 usr; do
  if [ -L "/$name" ]; then cp -P "/$name" .
  elif [ -d "/$name" ]; then mkdir "$name"; mount --bind -o ro "/$name" "$name"; fi
done
mkdir -p app dev etc proc ".$WORKDIR"
cp -a /etc/ld.so.cache /etc/alternatives /etc/passwd etc/
mount --bind -o ro "$REPOSITORY" app
mount --bind -o ro "$NODE_FOLDER" usr/local/bin
mount --rbind /dev dev
mount -t proc proc proc
for place in $TMPFS; do mkdir -p ".$place"; mount -t tmpfs -o mode=1777 none ".$place"; done
while [ "$1" != -- ]; do
  if [ -d "$1" ]; then mkdir -p ".$2"; else mkdir -p ".$(dirname "$2")"; touch ".$2"; fi
  mount --bind "$1" ".$2"
  [ "$3" = rw ] || mount -o "remount,bind,ro" ".$2"
  shift 3
done
shift
mount -o remount,ro "$NEW_ROOT"
ip link set lo up
exec chroot . "$@"`

/**
 * A container by hand, where there is no engine: namespaces of mounts, processes and the network, as Compose's `read_only`, `cap_drop` and
 * `no-new-privileges` ask for. Its network has nothing but itself, so its ports are those of the files and no neighbour has a name.
 * Not taken over: an init in front of the process (which is the first one), seccomp, cgroups and the files of the base image.
 */
export class HandContainer {
  #output = ''

  private constructor(
    readonly options: HandContainerOptions,
    readonly child: ChildProcess,
    readonly folder: string,
  ) {
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => (this.#output += chunk.toString()))
  }

  static start(options: HandContainerOptions): HandContainer {
    const folder = mkdtempSync(join(tmpdir(), 'gantry-container-'))
    const mounts = options.mounts.flatMap(({ from, at, readOnly }) => [from, at, readOnly ? 'ro' : 'rw'])
    const inside = [...limited(options), ...options.image.entrypoint, ...options.command]
    const args = ['--mount', '--pid', '--net', '--fork', '--kill-child', 'sh', '-c', enter, 'sh']
    const child = spawn('unshare', [...args, ...mounts, '--', ...inside], {
      env: {
        PATH: process.env.PATH,
        NEW_ROOT: folder,
        REPOSITORY: root,
        NODE_FOLDER: dirname(realpathSync(process.execPath)),
        WORKDIR: options.image.workdir,
        TMPFS: options.tmpfs.join(' '),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    return new HandContainer(options, child, folder)
  }

  /** All that it said. */
  get output(): string {
    return this.#output
  }

  /** The first process of the container, as this machine counts. */
  async #first(): Promise<number> {
    const { pid } = this.child
    const children = () => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
    await until('the first process', () => children() !== '', 10_000)
    return Number(children().split(' ')[0])
  }

  /** A command beside the one that runs, as `docker exec`. */
  async exec(command: readonly string[]): Promise<Readonly<{ code: number | null; output: string }>> {
    const into = ['-t', String(await this.#first()), '-m', '-n', '-p', '-r']
    const { status, stdout, stderr } = spawnSync('nsenter', [...into, ...limited(this.options), ...command], {
      encoding: 'utf8',
    })
    return { code: status, output: stdout + stderr }
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    process.kill(await this.#first(), signal)
  }

  /** @returns its exit code; a container that is asked to end answers with that of its process. */
  async ended(): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, 'close')
    return this.child.exitCode
  }

  async remove(): Promise<void> {
    this.child.kill('SIGKILL')
    await this.ended()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

function limited({ image, env }: HandContainerOptions): readonly string[] {
  const [uid = '', gid = ''] = image.user.split(':')
  const rights = ['--clear-groups', '--no-new-privs', '--bounding-set=-all', '--inh-caps=-all']
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const path = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
  return [
    ...['setpriv', `--reuid=${uid}`, `--regid=${gid}`, ...rights],
    ...['env', '-i', '-C', image.workdir, path, ...image.env, ...variables],
  ]
}

/** Why no container can be made by hand here; undefined where it can. */
export function handContainerMissing(): string | undefined {
  const tried = spawnSync('unshare', [
    '--mount',
    '--pid',
    '--net',
    '--fork',
    'sh',
    '-c',
    'mount --make-rprivate / && ip link set lo up',
  ])
  return tried.status === 0
    ? undefined
    : 'namespaces cannot be made here (root, util-linux and iproute2 are needed)'
}
