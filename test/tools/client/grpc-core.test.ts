import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Tensor } from '../../../src/tensors/tensor.js'
import { openClient, type ClientOptions } from '../../../src/tools/client/open-client.js'
import { type CertificateFiles, selfSigned } from '../../support/certificate.js'
import { tritonClients } from '../../support/triton-clients.js'

const script = join(import.meta.dirname, '../../clients/grpc_core_server.py')

/** @returns its port */
async function grpcCore(files?: CertificateFiles): Promise<number> {
  const args = [script, ...(files === undefined ? [] : [files.keyFile, files.certificateFile])]
  const server = spawn(tritonClients?.python ?? '', args, { stdio: ['pipe', 'pipe', 'inherit'] })
  onTestFinished(async () => {
    const ended = once(server, 'exit')
    server.stdin.end()
    await ended
  })
  const [port] = (await once(server.stdout, 'data')) as [Buffer]
  return Number(port)
}

async function clientOf(url: string, options: ClientOptions = {}) {
  const client = await openClient(url, options)
  onTestFinished(() => client.close())
  return client
}

const tensor = (bytes: number): Tensor => ({
  name: 'IN',
  datatype: 'UINT8',
  shape: [bytes],
  data: new Uint8Array(bytes).map((_, index) => index % 251),
})

describe.skipIf(tritonClients === undefined)('a client of a server on the C++ of gRPC, as Triton is', () => {
  it('sends tensors of any size, many at once, and reads what is refused', { timeout: 30_000 }, async () => {
    const client = await clientOf(`grpc://127.0.0.1:${await grpcCore()}`)
    expect(await client.serverMetadata()).toMatchObject({ name: 'core' })
    for (const bytes of [4, 20_000, 300_000, 5_000_000]) {
      const sent = tensor(bytes)
      const answers = await Promise.all(Array.from({ length: 8 }, () => client.infer({ name: 'm' }, [sent])))
      for (const [output] of answers) expect(Buffer.compare(output!.data, sent.data)).toBe(0)
    }
    await expect(client.infer({ name: 'none' }, [tensor(4)], ['OUT'])).rejects.toMatchObject({
      code: 'GANTRY_MODEL_NOT_FOUND',
      message: expect.stringContaining("there is no model 'none', é 100 %") as string,
    })
    // The table of headers is still the same on both sides.
    expect(await client.infer({ name: 'm' }, [tensor(4)])).toHaveLength(1)
  })

  it('speaks TLS to it, where its certificate is vouched for', { timeout: 30_000 }, async () => {
    const files = selfSigned()
    const url = `grpcs://127.0.0.1:${await grpcCore(files)}`
    await expect(openClient(url)).rejects.toMatchObject({
      code: 'GANTRY_SERVER_UNREACHABLE',
      message: expect.stringContaining('self-signed certificate') as string,
    })
    const client = await clientOf(url, { trust: { ca: files.certificate } })
    const [output] = await client.infer({ name: 'm' }, [tensor(300_000)])
    expect(Buffer.compare(output!.data, tensor(300_000).data)).toBe(0)
  })
})
