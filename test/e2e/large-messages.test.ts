import { readFileSync } from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import { ClientService } from '../support/client-service.js'
import { GrpcClient } from '../support/grpc-client.js'
import { descendants } from '../support/processes.js'

const items = 3
const bytes = items * 640 * 640 * 3
const sideBySide = 4
/** A seventh of the messages that are measured would be more than that. */
const growthBytes = 64 * 1024 ** 2

it('large messages over gRPC leave no memory behind in the model server', { timeout: 300_000 }, async () => {
  const running = await ClientService.start()
  onTestFinished(() => running[Symbol.asyncDispose]())
  const client = new GrpcClient(Number(running.grpc.split(':')[1]))
  onTestFinished(() => client.close())
  const pid = descendants(running.service.pid).find(({ command }) =>
    command.includes('model-server/main.js'),
  )?.pid
  const rssBytes = () =>
    Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
  const picture = Buffer.alloc(bytes, 7)
  const send = async (): Promise<void> => {
    const { raw_output_contents: outputs } = await client.call('ModelInfer', {
      model_name: 'echo_picture',
      inputs: [{ name: 'in0', datatype: 'UINT8', shape: [items, 640, 640, 3] }],
      raw_input_contents: [picture],
    })
    expect((outputs as readonly Buffer[])[0]?.length).toBe(bytes)
  }
  const sendAll = async (rounds: number): Promise<void> => {
    for (let i = 0; i < rounds; i++) await Promise.all(Array.from({ length: sideBySide }, send))
  }
  await sendAll(16)
  const before = rssBytes()
  await sendAll(32)
  const grown = rssBytes() - before
  process.stdout.write(`${JSON.stringify({ messages: 32 * sideBySide, bytes, before, grownBytes: grown })}\n`)
  expect(grown).toBeLessThan(growthBytes)
})
