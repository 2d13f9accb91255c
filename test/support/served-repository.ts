import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { startGrpc } from '../../src/api/grpc/grpc-server.js'
import { createKserveApp } from '../../src/api/kserve/kserve-app.js'
import type { Message } from '../../src/kserve/grpc-schema.js'
import type { Datatype } from '../../src/tensors/element-type.js'
import { GrpcClient, type ServiceError } from './grpc-client.js'
import { ask, type Reply } from './http.js'
import { serveRepository } from './real-repository.js'
import { silentLog } from './silent-log.js'

export type AskedInput = Readonly<{
  name: string
  datatype: Datatype
  shape: readonly number[]
  data: Uint8Array
}>

/** What a client hears: outputs as bytes, or the status and words of the refusal. */
export type Heard = Readonly<
  | {
      outputs: readonly Readonly<{ name: string; datatype: string; shape: readonly number[]; data: Buffer }>[]
    }
  | { status: number; error: string }
>

/** Models of a folder, by both protocols on free ports; it ends with the test. */
export class ServedRepository {
  private constructor(
    readonly url: string,
    readonly grpc: GrpcClient,
    /** `host:port` */
    readonly addresses: Readonly<{ http: string; grpc: string }>,
  ) {}

  static async of(
    dir: string,
    options: Parameters<typeof serveRepository>[1] = {},
  ): Promise<ServedRepository> {
    const server = await serveRepository(dir, options)
    const log = silentLog()
    const app = createKserveApp(server, { maxBodyBytes: 64_000_000, log })
    await app.listen({ host: '127.0.0.1', port: 0 })
    const grpc = await startGrpc(server, { host: '127.0.0.1', port: 0, log })
    const client = new GrpcClient(grpc.port)
    onTestFinished(async () => {
      client.close()
      app.server.closeAllConnections()
      await Promise.all([app.close(), grpc.stop(0)])
    })
    const http = `127.0.0.1:${(app.server.address() as AddressInfo).port}`
    return new ServedRepository(`http://${http}`, client, { http, grpc: `127.0.0.1:${grpc.port}` })
  }

  /** A request in JSON. */
  json(model: string, body: object): Promise<Reply> {
    return ask(`${this.url}/v2/models/${model}/infer`, { method: 'POST', body })
  }

  /** By HTTP with tensors in binary. @param outputs - names; absent: all */
  async binary(model: string, inputs: readonly AskedInput[], outputs?: readonly string[]): Promise<Heard> {
    const header = JSON.stringify({
      inputs: inputs.map(({ data, ...input }) => ({
        ...input,
        parameters: { binary_data_size: data.byteLength },
      })),
      ...(outputs && { outputs: outputs.map((name) => ({ name, parameters: { binary_data: true } })) }),
      parameters: { binary_data_output: true },
    })
    const reply = await ask(`${this.url}/v2/models/${model}/infer`, {
      method: 'POST',
      headers: { 'inference-header-content-length': String(Buffer.byteLength(header)) },
      body: Buffer.concat([Buffer.from(header), ...inputs.map(({ data }) => data)]),
    })
    if (reply.status !== 200) return { status: reply.status, error: (reply.json as { error: string }).error }
    const given = reply.headers['inference-header-content-length']
    const headerBytes = given === undefined ? reply.bytes.byteLength : Number(given)
    const answer = JSON.parse(reply.bytes.toString('utf8', 0, headerBytes)) as {
      outputs: { name: string; datatype: string; shape: number[]; parameters: { binary_data_size: number } }[]
    }
    let at = headerBytes
    const read = answer.outputs.map(({ name, datatype, shape, parameters: { binary_data_size: size } }) => {
      at += size
      return { name, datatype, shape, data: reply.bytes.subarray(at - size, at) }
    })
    return { outputs: read }
  }

  /** By gRPC with raw contents. */
  async rawGrpc(
    model: string,
    inputs: readonly AskedInput[],
    outputs: readonly string[] = [],
  ): Promise<Heard> {
    const message = {
      model_name: model,
      inputs: inputs.map(({ name, datatype, shape }) => ({ name, datatype, shape })),
      outputs: outputs.map((name) => ({ name })),
      raw_input_contents: inputs.map(({ data }) => data),
    }
    try {
      const answer = await this.grpc.call('ModelInfer', message)
      const contents = answer['raw_output_contents'] as Buffer[]
      const read = (answer['outputs'] as Message[]).map((output, index) => ({
        name: output['name'] as string,
        datatype: output['datatype'] as string,
        shape: (output['shape'] as (number | string)[] | undefined)?.map(Number) ?? [],
        data: Buffer.from(contents[index]!),
      }))
      return { outputs: read }
    } catch (error) {
      const { code, details } = error as ServiceError
      return { status: code, error: details }
    }
  }

  /** By both protocols, which are to hear the same but for the number of the status. */
  async both(
    model: string,
    inputs: readonly AskedInput[],
    outputs?: readonly string[],
  ): Promise<[Heard, Heard]> {
    return [await this.binary(model, inputs, outputs), await this.rawGrpc(model, inputs, outputs)]
  }
}

export function fp32Input(name: string, shape: readonly number[], values: readonly number[]): AskedInput {
  return { name, datatype: 'FP32', shape, data: new Uint8Array(Float32Array.from(values).buffer) }
}

export function bytesInput(
  name: string,
  shape: readonly number[],
  elements: readonly Uint8Array[],
): AskedInput {
  const parts = elements.flatMap((element) => {
    const length = Buffer.alloc(4)
    length.writeUInt32LE(element.byteLength)
    return [length, element]
  })
  return { name, datatype: 'BYTES', shape, data: Buffer.concat(parts) }
}

/** Outputs as name, shape and floats, or the refusal. */
export function floatsOf(heard: Heard): unknown {
  if (!('outputs' in heard)) return heard
  return heard.outputs.map(({ name, shape, data }) => [
    name,
    shape,
    [...new Float32Array(new Uint8Array(data).buffer)],
  ])
}
