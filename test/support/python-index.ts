import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import { tempDir } from './temp-dir.js'

export type WheelSpec = Readonly<{
  name: string
  version: string
  tags?: string
  files: Readonly<Record<string, Uint8Array>>
  /** What its RECORD says of every file, in place of the truth. */
  sha256?: string
}>

/** A wheel as package indexes have them. @returns its path. */
export function makeWheel({ name, version, tags, files, sha256 }: WheelSpec): string {
  const folder = tempDir()
  const tree = mkdtempSync(join(folder, 'tree-'))
  const distribution = `${name.replaceAll('-', '_')}-${version}`
  const info = `${distribution}.dist-info`
  const all: Record<string, Uint8Array> = {
    ...files,
    [`${info}/METADATA`]: Buffer.from(`Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`),
    [`${info}/WHEEL`]: Buffer.from('Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\n'),
  }
  const record = Object.entries(all).map(
    ([path, bytes]) => `${path},sha256=${sha256 ?? digest(bytes, 'base64url')},${bytes.length}\n`,
  )
  for (const [path, bytes] of [...Object.entries(all), [`${info}/RECORD`, record.join('')] as const]) {
    mkdirSync(dirname(join(tree, path)), { recursive: true })
    writeFileSync(join(tree, path), bytes)
  }
  const wheel = join(folder, `${distribution}-${tags ?? 'py3-none-manylinux_2_27_x86_64'}.whl`)
  const zip = spawnSync('python3', ['-m', 'zipfile', '-c', wheel, ...readdirSync(tree)], {
    cwd: tree,
    encoding: 'utf8',
  })
  if (zip.status !== 0) throw new Error(`the wheel was not made: ${zip.stderr}`)
  return wheel
}

/** A package index on a loopback address, as pip asks them. It ends with the test. */
export class PythonIndex {
  /** Files that were asked for, in order. */
  readonly asked: string[] = []
  readonly #wheels = new Map<string, Readonly<{ bytes: Buffer; sha256: string }>>()
  readonly #held: ServerResponse[] = []
  #holding: Readonly<{ name: string; asked: () => void }> | undefined
  #port = 0

  static async start(): Promise<PythonIndex> {
    const index = new PythonIndex()
    const server = createServer(({ url = '' }, response) => index.#answer(url, response))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    index.#port = (server.address() as AddressInfo).port
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    return index
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/simple`
  }

  /** @param sha256 - that it promises, in place of the true one. */
  add(spec: WheelSpec, sha256?: string): void {
    const path = makeWheel(spec)
    const bytes = readFileSync(path)
    this.#wheels.set(basename(path), { bytes, sha256: sha256 ?? digest(bytes, 'hex') })
  }

  /** Sends half of the files of a package, and then nothing. @returns once one was asked for. */
  hold(name: string): Promise<void> {
    return new Promise((asked) => (this.#holding = { name, asked }))
  }

  /** Sends them as others, and forgets those that wait. */
  release(): void {
    this.#holding = undefined
    for (const response of this.#held.splice(0)) response.destroy()
  }

  #answer(url: string, response: ServerResponse): void {
    const file = basename(url)
    const wheel = this.#wheels.get(file)
    if (url.startsWith('/files/') && wheel !== undefined) {
      this.asked.push(file)
      response.writeHead(200, { 'content-length': wheel.bytes.length })
      if (this.#holding?.name !== nameOf(file)) return void response.end(wheel.bytes)
      this.#held.push(response)
      return void response.write(wheel.bytes.subarray(0, wheel.bytes.length / 2), this.#holding.asked)
    }
    const links = [...this.#wheels]
      .filter(([other]) => url === `/simple/${nameOf(other)}/`)
      .map(([other, { sha256 }]) => `<a href="../../files/${other}#sha256=${sha256}">${other}</a>`)
    response.writeHead(links.length === 0 ? 404 : 200, { 'content-type': 'text/html' })
    response.end(`<!DOCTYPE html><html><body>${links.join('\n')}</body></html>`)
  }
}

function nameOf(wheel: string): string {
  return (wheel.split('-')[0] ?? '').replaceAll('_', '-')
}

function digest(bytes: Uint8Array, encoding: 'hex' | 'base64url'): string {
  return createHash('sha256').update(bytes).digest(encoding)
}
