import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ClientService } from '../support/client-service.js'
import { runClient, tritonClients } from '../support/triton-clients.js'

const suite = join(import.meta.dirname, '../clients/shared_memory_suite.py')

const checks = [
  'metadata',
  'sum_and_difference',
  'mixed_and_reused',
  'datatypes',
  'strings',
  'large',
  'errors',
  'cut_short',
  'cuda',
  'asynchronous',
]

describe.skipIf(tritonClients === undefined)('shared memory, with the clients of Triton unmodified', () => {
  let running: ClientService

  beforeAll(async () => {
    running = await ClientService.start({
      GANTRY__MODEL_SERVER__SHARED_MEMORY: 'true',
      GANTRY__MODEL_SERVER__SERVER_NAME: 'triton',
    })
  }, 180_000)

  afterAll(() => running?.[Symbol.asyncDispose]())

  const addressOf = (protocol: string) => (protocol === 'http' ? running.http : running.grpc)

  it.each(['http', 'grpc'])(
    'R71: tritonclient over %s passes tensors, and may cut its memory short',
    { timeout: 150_000 },
    async (kind) => {
      const said = await runClient(tritonClients?.python ?? '', [suite, kind, addressOf(kind)], 120_000)
      expect(JSON.parse(said)).toEqual(Object.fromEntries(checks.map((name) => [name, 'ok'])))
      // It was the same process all the time.
      expect((await running.service.ready()).modelServer?.restarts).toBe(0)
    },
  )
})
