import type { X509Certificate } from 'node:crypto'
import type { ServerTls } from './server.js'
import { certificatesIn, readTlsFiles, type TlsDemands, type TlsPaths } from './tls-files.js'

/** What is wrong with a file of `server.tls`. */
export type ServerTlsFault = Readonly<{ setting: keyof ServerTls; message: string; hint: string }>

/** What the files of a server are held to beyond what OpenSSL asks. */
export const serverTlsDemands = {
  caMaySign: true,
  chainInOrder: true,
  takesPassphrase: false,
} satisfies TlsDemands

/** The same files under the names that are common to both ends of a connection. */
export function serverTlsPaths({ cert, key, clientCa }: ServerTls): TlsPaths {
  return { cert, key, ca: clientCa }
}

/** Looks at the files. @param tls - with absolute paths. @returns nothing where they can be served with. Never throws. */
export function serverTlsFaults(tls: ServerTls): readonly ServerTlsFault[] {
  return readTlsFiles(serverTlsPaths(tls), serverTlsDemands).faults.map(({ setting, message, hint }) => ({
    setting: setting === 'ca' ? 'clientCa' : setting === 'passphrase' ? 'key' : setting,
    message,
    hint,
  }))
}

/** How long certificates are good for. Times are Unix milliseconds. */
export type Validity = Readonly<{ fromMs: number; untilMs: number; subject: string }>

/** Of the certificate of a PEM text that ends first. @throws where one cannot be read */
export function validityOf(pem: string): Validity {
  const all = certificatesIn(pem).map((certificate) => ({
    fromMs: Date.parse(certificate.validFrom),
    untilMs: Date.parse(certificate.validTo),
    subject: shortName(certificate),
  }))
  return all.reduce((first, next) => (next.untilMs < first.untilMs ? next : first))
}

/** From so long before its end on, a certificate is spoken of. */
export const renewWithinMs = 14 * 24 * 3_600_000

/** What is to be said of a certificate at a time; `undefined` while it is good for long enough. */
export function validityFault({ fromMs, untilMs, subject }: Validity, nowMs: number): string | undefined {
  const at = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
  if (nowMs >= untilMs) return `the certificate of ${subject} expired at ${at(untilMs)}`
  if (nowMs < fromMs) return `the certificate of ${subject} is not valid before ${at(fromMs)}`
  if (untilMs - nowMs >= renewWithinMs) return undefined
  const days = Math.floor((untilMs - nowMs) / 86_400_000)
  return `the certificate of ${subject} expires at ${at(untilMs)}, in ${days} day${days === 1 ? '' : 's'}`
}

/** `CN=gantry`, or what else the certificate is called. */
function shortName({ subject, subjectAltName }: X509Certificate): string {
  const parts = (subject ?? '').split('\n').filter((part) => part !== '')
  return parts.findLast((part) => part.startsWith('CN=')) ?? (parts.join(', ') || subjectAltName || 'no name')
}
