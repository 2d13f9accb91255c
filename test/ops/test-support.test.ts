import { createServer } from 'node:net'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { freePort } from '../support/free-port.js'
import { TestService } from '../support/service.js'
import { Hopeless, until } from '../support/until.js'

it('gives no port twice, and none that the kernel gives to others', async () => {
  const ports = await Promise.all(Array.from({ length: 200 }, freePort))
  expect(new Set(ports).size).toBe(ports.length)
  expect(Math.max(...ports)).toBeLessThan(32_000)
})

it('gives up at once what is hopeless', async () => {
  const asked = until('a miracle', () => Promise.reject(new Hopeless('no')), 600_000)
  await expect(asked).rejects.toThrow('no')
})

it('tells why a service ended, and does not wait for it or talk to whoever has its port', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port: httpPort } = other.address() as { port: number }
  const server = { httpPort } as object
  try {
    const start = TestService.start({ pipeline: { engines: 0 }, server, startedWithinMs: 600_000 })
    await expect(start).rejects.toThrow(/service ended with 1:[^]*GANTRY_PORT_IN_USE/)
  } finally {
    other.close()
  }
}, 120_000)
