import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { textOfBytes } from './text-file.js'

/** PEM files of one end of TLS connections, as settings name them; paths are absolute. */
export type TlsPaths = Readonly<{
  /** Certificates that are trusted. */
  ca?: string | undefined
  /** This end's own certificate, with those between it and its CA behind it. */
  cert?: string | undefined
  key?: string | undefined
  /** Of the key; not a path. */
  passphrase?: string | undefined
}>

/** What the files hold, as `node:tls` takes it. */
export type TlsMaterial = Readonly<{ ca?: string; cert?: string; key?: string; passphrase?: string }>

/** What is wrong with one of the files, or with two of them together. */
export type TlsFault = Readonly<{ setting: keyof TlsPaths; message: string; hint: string }>

/** How strict to be beyond what TLS itself asks. */
export type TlsDemands = Readonly<{
  /** Each certificate of `ca` must be one that may sign others: for the CA that clients are checked against. */
  caMaySign?: boolean
  /** Each certificate of `cert` behind the first must have signed one before it: a server sends them as they stand. */
  chainInOrder?: boolean
  /** A passphrase can be set beside the key; absent: yes. */
  takesPassphrase?: boolean
}>

export type TlsReading = Readonly<{ material: TlsMaterial; faults: readonly TlsFault[] }>

const pemBlock = /-----BEGIN ([A-Z0-9 ]+)-----[\s\S]*?-----END \1-----/g
const certificateLabels = new Set(['CERTIFICATE', 'X509 CERTIFICATE', 'TRUSTED CERTIFICATE'])

/** Reads the files and says everything that is wrong with them. With a fault the material is of no use. Never throws. */
export function readTlsFiles(paths: TlsPaths, demands: TlsDemands = {}): TlsReading {
  const faults = [...missingPartners(paths)]
  const files = Object.fromEntries(
    (['ca', 'cert', 'key'] as const).flatMap((setting) => {
      const path = paths[setting]
      if (path === undefined) return []
      const text = readPem(path)
      if (typeof text === 'string') return [[setting, text]]
      faults.push({ setting, ...text })
      return []
    }),
  ) as { ca?: string; cert?: string; key?: string }
  const { passphrase } = paths
  const material: TlsMaterial = { ...files, ...(passphrase !== undefined && { passphrase }) }
  if (files.ca !== undefined) faults.push(...faultsOfCertificates('ca', paths.ca ?? '', files.ca, demands))
  if (files.cert !== undefined) faults.push(...faultsOfCertificates('cert', paths.cert ?? '', files.cert, {}))
  const key = files.key === undefined ? undefined : readKey(paths.key ?? '', files.key, passphrase, demands)
  if (key !== undefined && 'message' in key) faults.push(key)
  if (faults.length === 0 && files.cert !== undefined && key !== undefined && 'type' in key)
    faults.push(...faultsOfPair(paths, files.cert, key, demands))
  if (faults.length === 0) faults.push(...refusedByOpenssl(material, paths))
  return { material, faults }
}

/** Certificates of a PEM text in their order. @throws where one of them cannot be read */
export function certificatesIn(pem: string): X509Certificate[] {
  return blocksOf(pem)
    .filter(({ label }) => certificateLabels.has(label))
    .map(({ text }) => new X509Certificate(text))
}

function* missingPartners({ cert, key, passphrase }: TlsPaths): Generator<TlsFault> {
  if (cert !== undefined && key === undefined)
    yield {
      setting: 'cert',
      message: 'has no key beside it',
      hint: 'name the file of its private key in key',
    }
  if (key !== undefined && cert === undefined)
    yield { setting: 'key', message: 'has no certificate beside it', hint: 'name the file of it in cert' }
  if (passphrase !== undefined && key === undefined)
    yield { setting: 'passphrase', message: 'is for a key, and there is none', hint: 'name its file in key' }
}

type Words = Readonly<{ message: string; hint: string }>

/** The text of a PEM file, or what is wrong with it before a look at what it holds. */
function readPem(path: string): string | Words {
  let bytes: Buffer
  try {
    bytes = readFileSync(path)
  } catch (error) {
    return unreadable(path, (error as NodeJS.ErrnoException).code ?? String(error))
  }
  if (bytes.length === 0) return { message: `${path} is empty`, hint: 'write the PEM text into it' }
  const other = binaryForm(bytes)
  if (other !== undefined) return { message: `${path} is ${other.form}, not PEM`, hint: other.hint }
  try {
    return textOfBytes(bytes)
  } catch (error) {
    return { message: `${path}: ${(error as Error).message}`, hint: 'PEM is plain text' }
  }
}

function unreadable(path: string, code: string): Words {
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return {
        message: `${path} is not there`,
        hint: 'relative paths start at the folder of the pipeline file',
      }
    case 'EISDIR':
      return { message: `${path} is a folder`, hint: 'name a PEM file in it' }
    case 'EACCES':
    case 'EPERM':
      return {
        message: `${path} may not be read by this user`,
        hint: 'give the user that runs Gantry the right to read it',
      }
    default:
      return { message: `${path} cannot be read: ${code}`, hint: 'look at the file and its disk' }
  }
}

/** Forms of certificates and keys that other programs write. */
function binaryForm(bytes: Buffer): Readonly<{ form: string; hint: string }> | undefined {
  if (bytes.length > 4 && bytes.readUInt32BE(0) === 0xfeedfeed)
    return {
      form: 'a Java key store',
      hint: 'export it: keytool -importkeystore -deststoretype PKCS12, then openssl pkcs12 -in FILE -out FILE.pem',
    }
  if (bytes[0] !== 0x30 || (bytes[1] ?? 0) < 0x80) return undefined
  // PKCS#12 is a sequence that begins with the version 3; a certificate in DER is a sequence that begins with another one.
  const content = 2 + ((bytes[1] ?? 0) & 0x7f)
  const isPkcs12 = bytes.subarray(content, content + 3).equals(Buffer.from([2, 1, 3]))
  return isPkcs12
    ? { form: 'PKCS#12 (.p12, .pfx)', hint: 'convert it: openssl pkcs12 -in FILE -out FILE.pem' }
    : { form: 'DER', hint: 'convert it: openssl x509 (or pkey) -inform der -in FILE -out FILE.pem' }
}

function blocksOf(pem: string): { label: string; text: string }[] {
  return [...pem.matchAll(pemBlock)].map(([text, label = '']) => ({ label, text }))
}

function faultsOfCertificates(
  setting: 'ca' | 'cert',
  path: string,
  pem: string,
  { caMaySign = false }: TlsDemands,
): TlsFault[] {
  const blocks = blocksOf(pem)
  const certificates = blocks.filter(({ label }) => certificateLabels.has(label))
  if (certificates.length === 0) {
    const message = blocks.some(({ label }) => label.endsWith('PRIVATE KEY'))
      ? `${path} holds a private key and no certificate`
      : `${path} holds no certificate in PEM`
    return [{ setting, message, hint: 'a certificate begins with -----BEGIN CERTIFICATE-----' }]
  }
  for (const [index, { text }] of certificates.entries()) {
    const which = certificates.length === 1 ? 'its certificate' : `certificate ${index + 1} in it`
    let certificate: X509Certificate
    try {
      certificate = new X509Certificate(text)
    } catch {
      const message = `${path} is damaged: ${which} cannot be read`
      return [{ setting, message, hint: 'copy it again, with all its lines' }]
    }
    if (caMaySign && !certificate.ca) {
      const message = `${path} holds a certificate that is no CA: ${nameOf(certificate)}`
      return [{ setting, message, hint: 'name the certificate that signed it' }]
    }
  }
  return []
}

/** `CN=gantry`, or what else the certificate is called. */
function nameOf({ subject }: X509Certificate): string {
  return subject.split('\n').findLast((part) => part.startsWith('CN=')) ?? subject.replaceAll('\n', ', ')
}

function readKey(
  path: string,
  pem: string,
  passphrase: string | undefined,
  { takesPassphrase = true }: TlsDemands,
): KeyObject | TlsFault {
  const block = blocksOf(pem).find(({ label }) => label.endsWith('PRIVATE KEY'))
  if (block === undefined) {
    const message = `${path} holds no private key in PEM`
    return { setting: 'key', message, hint: 'a key begins with -----BEGIN PRIVATE KEY-----' }
  }
  const isLocked = block.label.startsWith('ENCRYPTED') || /^Proc-Type: 4,ENCRYPTED/m.test(block.text)
  if (isLocked && passphrase === undefined) {
    const without = 'write the key without one: openssl pkey -in FILE -out FILE.pem'
    const hint = takesPassphrase
      ? `set passphrase beside it (from \${NAME} or \${file:PATH}), or ${without}`
      : without
    return { setting: 'key', message: `${path} is a key with a passphrase`, hint }
  }
  try {
    return createPrivateKey({ key: block.text, ...(isLocked && { passphrase }) })
  } catch {
    return isLocked
      ? {
          setting: 'passphrase',
          message: `does not open the key ${path}`,
          hint: 'write the one it was made with',
        }
      : { setting: 'key', message: `${path} is damaged: the key cannot be read`, hint: 'copy it again' }
  }
}

function faultsOfPair(
  paths: TlsPaths,
  pem: string,
  key: KeyObject,
  { chainInOrder = false }: TlsDemands,
): TlsFault[] {
  const certificates = certificatesIn(pem)
  if (certificates[0]?.checkPrivateKey(key) === true)
    return chainInOrder ? faultsOfOrder(paths, certificates) : []
  const later = certificates.findIndex((certificate) => certificate.checkPrivateKey(key))
  if (later > 0) {
    const message = `${paths.cert} has its certificates in the wrong order: the one of the key comes as number ${later + 1}`
    const hint = 'put it first, then the one that signed it, and so on'
    return [{ setting: 'cert', message, hint }]
  }
  const message = `${paths.key} is not the key of the certificate in ${paths.cert}`
  return [{ setting: 'key', message, hint: 'name the key and the certificate that were made together' }]
}

function faultsOfOrder({ cert = '' }: TlsPaths, certificates: readonly X509Certificate[]): TlsFault[] {
  const stray = certificates.findIndex(
    (certificate, index) =>
      index > 0 && !certificates.slice(0, index).some((signed) => signed.checkIssued(certificate)),
  )
  if (stray < 0) return []
  const message = `${cert} has its certificates in the wrong order: number ${stray + 1} (${nameOf(certificates[stray]!)}) has signed none before it`
  return [
    {
      setting: 'cert',
      message,
      hint: 'put the one of the key first, then the one that signed it, and so on',
    },
  ]
}

/** Whatever else it does not take, such as a key that is too short for its security level. */
function refusedByOpenssl(material: TlsMaterial, paths: TlsPaths): TlsFault[] {
  try {
    createSecureContext(material)
    return []
  } catch (error) {
    const reason = (error as Error).message.replace(/^error:[0-9A-F]+:/i, '')
    const setting = material.cert === undefined ? 'ca' : 'cert'
    const message = `${paths[setting] ?? ''} is refused by OpenSSL: ${reason}`
    return [{ setting, message, hint: 'make a new one, with an RSA key of 2048 bits or an EC key' }]
  }
}
