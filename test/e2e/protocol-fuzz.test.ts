import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fuzzGrpc, fuzzHttp } from '../fuzz/fuzz.js'
import { ClientService } from '../support/client-service.js'
import { descendants } from '../support/processes.js'

/** `npm run fuzz` sends ten thousand over each protocol; the seed repeats a run. */
const count = Number(process.env['GANTRY_FUZZ_COUNT'] ?? 500)
const seed = Number(process.env['GANTRY_FUZZ_SEED'] ?? 1)

/** What the memory may grow by after the first run, when caches and pools are warm. */
const growthBytes = 64 * 1024 ** 2

describe('mutated requests', () => {
  let running: ClientService

  beforeAll(async () => {
    running = await ClientService.start()
  }, 180_000)

  afterAll(() => running[Symbol.asyncDispose]())

  const modelServer = () => {
    const found = descendants(running.service.pid).find(({ command }) =>
      command.includes('model-server/main.js'),
    )
    if (found === undefined) throw new Error('no model server process')
    return found.pid
  }

  const rssBytes = () =>
    Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${modelServer()}/status`, 'utf8'))?.[1]) * 1024

  it.each([
    ['HTTP', (n: number, s: number) => fuzzHttp(running.http, n, s)],
    ['gRPC', (n: number, s: number) => fuzzGrpc(running.grpc, n, s)],
  ] as const)(
    'over %s are all answered, by the same process, in flat memory',
    { timeout: 600_000 },
    async (name, fuzz) => {
      const pid = modelServer()
      await fuzz(count, seed)
      const before = rssBytes()
      const result = await fuzz(count, seed + 1)
      const grown = rssBytes() - before
      process.stdout.write(`${JSON.stringify({ name, seed, ...result, grownBytes: grown })}\n`)
      expect(result.unanswered).toBe(0)
      expect(result.answers).not.toHaveProperty(name === 'HTTP' ? '502' : '14')
      expect(modelServer()).toBe(pid)
      expect(grown).toBeLessThan(growthBytes)
    },
  )
})
