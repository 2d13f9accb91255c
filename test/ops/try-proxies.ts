/**
 * Follows docs/tls.md with the proxies in front that this machine has (Debian: `apt-get install nginx-light caddy`): each runs the file of
 * the page, with other names and ports, and is asked for the page, the stream, a large request and gRPC. Ends with 1 where one fails.
 *
 *     npx tsx test/ops/try-proxies.ts
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import { tinyRepository } from '../bench/tiny-model.js'
import { freePort } from '../support/free-port.js'
import { GrpcClient } from '../support/grpc-client.js'
import { TestService } from '../support/service.js'
import { TestAuthority } from '../support/test-authority.js'
import { fetchByTls } from '../support/tls-client.js'
import { until } from '../support/until.js'

const page = readFileSync(join(import.meta.dirname, '../../docs/tls.md'), 'utf8')
const floats = 5_000_000

type Proxy = Readonly<{
  name: string
  file: (text: string, dir: string) => string
  command: (dir: string) => string[]
}>

const proxies: readonly Proxy[] = [
  {
    name: 'nginx',
    file: (text, dir) =>
      `daemon off; pid ${dir}/pid; error_log stderr;\n` +
      text.replace(
        'http {',
        `http {\n  access_log off; client_body_temp_path ${dir}/body; proxy_temp_path ${dir}/proxy;`,
      ),
    command: (dir) => ['nginx', '-p', dir, '-c', join(dir, 'proxy.conf')],
  },
  {
    name: 'caddy',
    file: (text) => `{\n  admin off\n  auto_https disable_redirects\n}\n${text}`,
    command: (dir) => ['caddy', 'run', '--adapter', 'caddyfile', '--config', join(dir, 'proxy.conf')],
  },
]

function blockOf(language: string): string {
  const [, text] = new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(page) ?? []
  if (text === undefined) throw new Error(`docs/tls.md has no file for ${language}`)
  return text
}

const authority = new TestAuthority()
const { cert, key } = authority.issue('proxy', { names: 'DNS:gantry.example.com,DNS:localhost,IP:127.0.0.1' })
const repository = tinyRepository()
const trust = { ca: authority.text(authority.ca) }
let failed = false

function tell(...words: unknown[]): void {
  process.stdout.write(`${words.map(String).join(' ')}\n`)
}

async function tried(proxy: Proxy): Promise<void> {
  if (spawnSync('which', [proxy.name]).status !== 0) throw new Error(`${proxy.name} is not installed`)
  const grpcPort = await freePort()
  await using service = await TestService.start({
    server: { grpcPort, allowedHosts: ['gantry.example.com'] } as never,
    pipeline: {
      engines: 0,
      models: { repository: repository.dir, control: 'explicit', load: ['tiny'] },
      modelServer: { enabled: true },
    },
  })
  await until('the model', async () => (await service.fetch('/v2/models/tiny/ready')).ok, 60_000)
  const port = await freePort()
  const dir = join(authority.folder, proxy.name)
  mkdirSync(dir)
  const text = blockOf(proxy.name)
    .replaceAll(/\/etc\/\w+\/tls\/tls\.crt/g, cert)
    .replaceAll(/\/etc\/\w+\/tls\/tls\.key/g, key)
    .replaceAll('127.0.0.1:8000', `127.0.0.1:${service.httpPort}`)
    .replaceAll('127.0.0.1:8001', `127.0.0.1:${grpcPort}`)
    .replace('listen 443', `listen 127.0.0.1:${port}`)
    .replace(/^gantry\.example\.com \{/m, `gantry.example.com:${port}, localhost:${port} {`)
  writeFileSync(join(dir, 'proxy.conf'), proxy.file(text, dir))
  const [command = '', ...args] = proxy.command(dir)
  const child = spawn(command, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, HOME: dir },
  })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (line: string) => (said += line))
  try {
    const host = `gantry.example.com:${port}`
    // By address, under the name: it is not in the DNS of this machine.
    const by = { ...trust, servername: 'gantry.example.com' }
    const headers = { host }
    const url = `https://127.0.0.1:${port}`
    await until('the proxy', async () => (await fetchByTls(`${url}/readyz`, by, { headers })).ok, 20_000)
    tell(proxy.name, 'page', (await fetchByTls(`${url}/`, by, { headers })).status)
    const socket = new WebSocket(`wss://127.0.0.1:${port}/api/v1/stream`, 'gantry.v1', {
      ...{ ...by, headers, origin: `https://${host}` },
    })
    const [hello] = (await once(socket, 'message')) as [Buffer]
    tell(proxy.name, 'stream', (JSON.parse(hello.toString()) as { type: string }).type)
    socket.terminate()
    // The model takes 256 numbers and refuses them by name; the proxy must let them come so far.
    const json = JSON.stringify({
      inputs: [
        { name: 'x0', datatype: 'FP32', shape: [floats], parameters: { binary_data_size: 4 * floats } },
      ],
    })
    const body = Buffer.concat([Buffer.from(json), Buffer.alloc(4 * floats)])
    const large = await fetchByTls(`${url}/v2/models/tiny/infer`, by, {
      method: 'POST',
      headers: { ...headers, 'inference-header-content-length': String(json.length) },
      body,
    })
    const answer = await large.text()
    tell(proxy.name, `${body.length} bytes`, large.status, answer.slice(0, 100))
    if (!answer.includes('x0')) throw new Error('the large request did not come to the model')
    const client = new GrpcClient(port, {}, trust, 'localhost')
    const inferred = await client.call(
      'ModelInfer',
      {
        model_name: 'tiny',
        inputs: [
          {
            name: 'x0',
            datatype: 'FP32',
            shape: [256],
            contents: { fp32_contents: Array<number>(256).fill(2) },
          },
        ],
      },
      { deadlineMs: 10_000 },
    )
    tell(proxy.name, 'gRPC', inferred.model_name)
    client.close()
  } catch (error) {
    failed = true
    tell(proxy.name, error instanceof Error ? error.stack : error, said)
  } finally {
    child.kill('SIGTERM')
    if (child.exitCode === null) await once(child, 'exit')
  }
}

try {
  for (const proxy of proxies) await tried(proxy)
} finally {
  authority.remove()
  rmSync(repository.dir, { recursive: true, force: true })
}
process.exitCode = failed ? 1 : 0
