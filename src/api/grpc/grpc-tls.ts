import { ServerCredentials } from '@grpc/grpc-js'
import type { SecureContextOptions } from 'node:tls'
import type { TlsMaterial } from '../../config/tls-files.js'

/** From the first byte of a connection to the end of its handshake. */
const handshakeAtMostMs = 10_000

/** What the gRPC server ends TLS with; another certificate can take its place while it runs. */
export class GrpcTls extends ServerCredentials {
  /** @param material - with a CA, clients have to show a certificate of it. */
  constructor(material: TlsMaterial) {
    super(
      {
        requestCert: material.ca !== undefined,
        rejectUnauthorized: material.ca !== undefined,
        minVersion: 'TLSv1.2',
        handshakeTimeout: handshakeAtMostMs,
      },
      contextOf(material),
    )
  }

  /** For connections that come from now on. */
  use(material: TlsMaterial): void {
    this.updateSecureContextOptions(contextOf(material))
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other
  }
}

function contextOf({ cert, key, ca }: TlsMaterial): SecureContextOptions {
  return { cert, key, ...(ca !== undefined && { ca }), minVersion: 'TLSv1.2' }
}
