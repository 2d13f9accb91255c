import type { KServeClient } from './kserve-client.js'
import { GrpcKServeClient } from './grpc-client.js'
import { HttpKServeClient } from './http-client.js'
import type { WireForm } from './http-infer.js'
import type { ServerTrust } from './server-socket.js'
import { type ServerProtocol, serverTarget } from './server-url.js'

export type ClientOptions = Readonly<{
  /** Undefined: as the address says, else HTTP. */
  protocol?: ServerProtocol | undefined
  token?: string | undefined
  trust?: ServerTrust | undefined
  /** Of tensors over HTTP; undefined: binary where the server says that it reads them. */
  form?: WireForm | undefined
}>

/**
 * A client of a server that answers.
 *
 * @param url - undefined: this machine.
 * @throws ServerUrlError; what {@link KServeClient.serverMetadata} throws.
 */
export async function openClient(
  url: string | undefined,
  options: ClientOptions = {},
): Promise<KServeClient> {
  const { protocol, token, trust = {}, form } = options
  const target = serverTarget(url, protocol)
  if (target.protocol === 'grpc') {
    const client = new GrpcKServeClient(target, trust, token)
    await closedUnless(client, () => client.serverMetadata())
    return client
  }
  const first = new HttpKServeClient(target, trust, token, form ?? 'binary')
  const { extensions } = await first.serverMetadata()
  if (form !== undefined || extensions.includes('binary_tensor_data')) return first
  return new HttpKServeClient(target, trust, token, 'json')
}

async function closedUnless(client: KServeClient, look: () => Promise<unknown>): Promise<void> {
  try {
    await look()
  } catch (error) {
    client.close()
    throw error
  }
}
