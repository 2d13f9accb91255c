import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A certificate and its key in files. */
export type IssuedFiles = Readonly<{ cert: string; key: string }>

export type IssueOptions = Readonly<{
  /** As in a certificate: `IP:127.0.0.1,DNS:localhost`. */
  names?: string
  /** Ended a day ago. */
  expired?: boolean
  /** Locks the key. */
  passphrase?: string
}>

/** A certificate authority made by openssl, in a folder of its own. */
export class TestAuthority {
  readonly folder = mkdtempSync(join(tmpdir(), 'gantry-authority-'))
  readonly ca = join(this.folder, 'ca.pem')
  readonly #key = join(this.folder, 'ca.key')

  constructor(name = 'test authority') {
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', this.#key]
    this.openssl('req', '-x509', '-days', '2', ...key, '-subj', `/CN=${name}`, '-out', this.ca)
  }

  /** A certificate of this authority, with a name for its files and its subject. */
  issue(
    name: string,
    { names = 'IP:127.0.0.1,DNS:localhost', expired = false, passphrase }: IssueOptions = {},
  ): IssuedFiles {
    const [cert, key, request, extensions] = ['pem', 'key', 'csr', 'ext'].map((end) =>
      join(this.folder, `${name}.${end}`),
    ) as [string, string, string, string]
    const lock = passphrase === undefined ? ['-nodes'] : ['-passout', `pass:${passphrase}`]
    const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-keyout', key, ...lock]
    this.openssl('req', '-new', ...ec, '-subj', `/CN=${name}`, '-out', request)
    writeFileSync(extensions, `subjectAltName=${names}\nbasicConstraints=CA:FALSE\n`)
    const from = ['-in', request, '-out', cert, '-extfile', extensions]
    if (expired) this.openssl(...this.#issuerInThePast(), ...from)
    else
      this.openssl(
        'x509',
        '-req',
        '-CA',
        this.ca,
        '-CAkey',
        this.#key,
        '-CAcreateserial',
        '-days',
        '1',
        ...from,
      )
    return { cert, key }
  }

  openssl(...args: string[]): void {
    execFileSync('openssl', args, { stdio: 'pipe' })
  }

  text(file: string): string {
    return readFileSync(file, 'utf8')
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** Only `openssl ca` of OpenSSL 3.0 takes dates. */
  #issuerInThePast(): string[] {
    const config = join(this.folder, 'ca.cnf')
    const [index, serial] = [join(this.folder, 'index.txt'), join(this.folder, 'serial')]
    writeFileSync(index, '')
    writeFileSync(serial, '1000\n')
    const lines = [
      '[ca]',
      'default_ca = own',
      '[own]',
      `database = ${index}`,
      `serial = ${serial}`,
      `new_certs_dir = ${this.folder}`,
      `certificate = ${this.ca}`,
      `private_key = ${this.#key}`,
      'default_md = sha256',
      'policy = any',
      '[any]',
      'commonName = supplied',
    ]
    writeFileSync(config, `${lines.join('\n')}\n`)
    const dates = ['-startdate', '20200101000000Z', '-enddate', '20200201000000Z']
    return ['ca', '-batch', '-notext', '-config', config, ...dates]
  }
}
