import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { KafkaPlace } from '../../web/src/api/types.js'
import { addCameraCommand, dataCommands } from '../../web/src/commands/data-commands.js'
import { inferCommand } from '../../web/src/commands/infer-command.js'

const base = 'http://127.0.0.1:8000/'
const kafka: KafkaPlace = {
  brokers: ['127.0.0.1:9092'],
  topic: 'gantry.detections.v1',
  security: 'PLAINTEXT',
  saslMechanism: null,
}

/** What bash makes of a command: the arguments of curl, and what curl would read. */
function runBy(command: string): Readonly<{ args: readonly string[]; body: Buffer }> {
  const script = `curl() { printf '%s\\0' "$@"; printf '\\0'; if [[ "$*" == *"@-"* ]]; then command cat; fi; }
cut() { command cat; }
${command}`
  const said = execFileSync('bash', ['-c', script], { maxBuffer: 64 * 1024 ** 2 })
  const end = said.indexOf('\0\0')
  return { args: said.subarray(0, end).toString().split('\0'), body: said.subarray(end + 2) }
}

describe('commands of the page', () => {
  it('are those of the README', () => {
    const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8')
    const section = readme.split('## The first ten minutes')[1]?.split('\n## ')[0] ?? ''
    const blocks = [...section.matchAll(/```sh\n(.*?)\n```/gs)].map(([, text = '']) => text)
    const source = { base, wantsToken: false, kafka }
    const [curl, webSocket, consumer] = dataCommands(source).map(({ text }) => text)
    const add = addCameraCommand(source, 'rtsp://192.0.2.10:554/stream1')
    expect(blocks).toEqual([curl, webSocket, add, consumer])
    const off = dataCommands({ ...source, kafka: null })[2]?.text
    expect(section).toContain(`\`${off}\``)
  })

  it.each([
    ['a text', { name: 'text', datatype: 'BYTES', shape: [-1, 1] }, ['']],
    ['numbers', { name: 'x', datatype: 'INT64', shape: [3] }, [0, 0, 0]],
    ['a truth', { name: 'x', datatype: 'BOOL', shape: [1] }, [false]],
    ["a name with '; touch /tmp/x; '", { name: `'; $(id) "`, datatype: 'FP32', shape: [1] }, [0]],
  ])('ask a model for %s in JSON', (name, input, data) => {
    const { args } = runBy(inferCommand(base, { name, inputs: [input] }, false))
    expect(args).toContain(`${base}v2/models/${encodeURIComponent(name)}/infer`)
    const shape = input.shape.map((size) => Math.abs(size))
    expect(JSON.parse(args.at(-1) ?? '')).toEqual({ inputs: [{ ...input, shape, data }] })
  })

  it.each([
    ['FP32', 4],
    ['FP16', 2],
    ['UINT8', 1],
    ['INT64', 8],
    ['BYTES', 4],
  ])('ask a model with a large input of %s in binary', (datatype, bytes) => {
    const inputs = [
      { name: `it's large, ä`, datatype, shape: [-1, 3, 100, 100] },
      { name: 'small', datatype: 'FP32', shape: [1] },
    ]
    const { args, body } = runBy(inferCommand(base, { name: 'big', inputs }, true))
    const headBytes = Number(/\d+/.exec(args.find((arg) => arg.startsWith('Inference-Header')) ?? '')?.[0])
    const head = JSON.parse(body.subarray(0, headBytes).toString()) as {
      inputs: { name: string; shape: number[]; parameters: { binary_data_size: number } }[]
    }
    const sizes = head.inputs.map(({ parameters }) => parameters.binary_data_size)
    expect(sizes).toEqual([30_000 * bytes, 4])
    expect(head.inputs[0]).toMatchObject({ name: `it's large, ä`, shape: [1, 3, 100, 100] })
    expect(body.length - headBytes).toBe(30_000 * bytes + 4)
  })

  it('name how a broker with TLS and logins is reached, and no secret', () => {
    const secured = { ...kafka, security: 'SASL_SSL', saslMechanism: 'SCRAM-SHA-256' } as const
    const [curl, webSocket, consumer] = dataCommands({ base, wantsToken: true, kafka: secured })
    expect(curl?.text).toContain('"Authorization: Bearer $GANTRY_TOKEN"')
    expect(webSocket?.text).toContain('process.env.GANTRY_TOKEN')
    expect(consumer?.text).toContain('-X security.protocol=SASL_SSL -X sasl.mechanisms=SCRAM-SHA-256')
    expect(consumer?.text).toContain('"$KAFKA_PASSWORD"')
  })

  it('reach a service behind a path of a proxy, and one by TLS', () => {
    const [curl, webSocket] = dataCommands({
      base: 'https://plant.example/gantry/',
      wantsToken: false,
      kafka,
    })
    expect(curl?.text).toContain('https://plant.example/gantry/api/v1/detections')
    expect(webSocket?.text).toContain('wss://plant.example/gantry/api/v1/stream')
  })
})
