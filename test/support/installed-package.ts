import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { asOther, otherUid } from './other-user.js'

const root = join(import.meta.dirname, '../..')

/** How a command ended; `output` is all that it said. */
type Ended = Readonly<{ code: number | null; stdout: string; stderr: string; output: string }>

/** The package of this repository for this machine, installed as its users do: by npm, far from the repository, with few rights. */
export class InstalledPackage {
  readonly #folder: string

  private constructor(
    folder: string,
    readonly tarball: string,
  ) {
    this.#folder = folder
  }

  /**
   * Packs and installs. The user may not write at home, and there is no registry: nobody listens on port 9.
   *
   * @throws what `npm run pack` or npm say
   */
  static async create(): Promise<InstalledPackage> {
    const folder = mkdtempSync(join(tmpdir(), 'gantry-installed-'))
    chmodSync(folder, 0o755)
    const pack = [join(root, 'scripts/pack.mjs'), `linux-${process.arch}`, '--out', join(folder, 'packed')]
    const packed = await ended(process.execPath, pack, {})
    if (packed.code !== 0) throw new Error(packed.stderr)
    const installed = new InstalledPackage(folder, packed.stdout.trim())
    mkdirSync(join(folder, 'home'), { mode: 0o555 })
    for (const name of ['prefix', 'cache', 'data']) {
      mkdirSync(join(folder, name))
      chownSync(join(folder, name), otherUid, otherUid)
    }
    const npm = ['npm', 'install', '--global', '--ignore-scripts=false', '--registry=http://127.0.0.1:9/']
    const { code, output } = await installed.#run([...npm, installed.tarball])
    if (code !== 0) throw new Error(output)
    return installed
  }

  /** Where npm put it. */
  get place(): string {
    return join(this.#folder, 'prefix/lib/node_modules/gantry')
  }

  /** A folder that the user may write. */
  get data(): string {
    return join(this.#folder, 'data')
  }

  get #env(): NodeJS.ProcessEnv {
    const path = [join(this.#folder, 'prefix/bin'), dirname(process.execPath), process.env.PATH ?? '']
    return {
      PATH: path.join(delimiter),
      HOME: join(this.#folder, 'home'),
      XDG_DATA_HOME: this.data,
      npm_config_prefix: join(this.#folder, 'prefix'),
      npm_config_cache: join(this.#folder, 'cache'),
    }
  }

  /** `gantry` to its end. */
  gantry(...args: string[]): Promise<Ended> {
    return this.#run(['gantry', ...args])
  }

  /** `gantry` that goes on, with what it prints in pipes. */
  start(...args: string[]): ChildProcess {
    const [command = '', ...rest] = [...asOther, 'gantry', ...args]
    return spawn(command, rest, { cwd: '/', env: this.#env, stdio: ['ignore', 'pipe', 'pipe'] })
  }

  #run(words: readonly string[]): Promise<Ended> {
    const [command = '', ...rest] = [...asOther, ...words]
    return ended(command, rest, { cwd: '/', env: this.#env })
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** Not by `spawnSync`: a test that holds its process for a minute is given up. */
function ended(command: string, args: readonly string[], options: object): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(
      command,
      args,
      { ...options, maxBuffer: 64 * 1024 ** 2 },
      (error, stdout, stderr) => {
        const failure = error !== null && child.exitCode === null ? error.message : ''
        resolve({ code: child.exitCode, stdout, stderr: stderr + failure, output: stdout + stderr + failure })
      },
    )
  })
}
