import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from './temp-dir.js'

export type Certificate = Readonly<{ key: Buffer; certificate: Buffer }>

/** The same in files, for programs that want paths. */
export type CertificateFiles = Certificate & Readonly<{ keyFile: string; certificateFile: string }>

/** A certificate for 127.0.0.1 that vouches for itself, PEM. */
export function selfSigned(): CertificateFiles {
  const dir = tempDir()
  const [keyFile, certificateFile] = [join(dir, 'key.pem'), join(dir, 'certificate.pem')]
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', keyFile]
  const names = ['-subj', '/CN=gantry test', '-addext', 'subjectAltName=IP:127.0.0.1']
  const args = ['req', '-x509', '-days', '1', ...key, ...names, '-out', certificateFile]
  execFileSync('openssl', args, { stdio: 'pipe' })
  return { key: readFileSync(keyFile), certificate: readFileSync(certificateFile), keyFile, certificateFile }
}
