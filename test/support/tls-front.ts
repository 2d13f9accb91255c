import { type AddressInfo, connect } from 'node:net'
import { createServer } from 'node:tls'
import { onTestFinished } from 'vitest'
import { type CertificateFiles, selfSigned } from './certificate.js'

/** TLS on a free port in front of a plain one, as a proxy does it; stopped when the test ends. */
export async function tlsFront(
  targetPort: number,
): Promise<Readonly<{ port: number; files: CertificateFiles }>> {
  const files = selfSigned()
  const { key, certificate: cert } = files
  const server = createServer({ key, cert, ALPNProtocols: ['h2', 'http/1.1'] }, (near) => {
    const far = connect(targetPort, '127.0.0.1')
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const)
      socket
        .on('error', () => other.destroy())
        .on('close', () => other.destroy())
        .pipe(other)
    onTestFinished(() => void far.destroy())
  })
  // A client that does not trust it says so itself.
  server.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { port: (server.address() as AddressInfo).port, files }
}
