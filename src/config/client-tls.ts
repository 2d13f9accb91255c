import { resolve } from 'node:path'
import { z } from 'zod'
import { getAt, setAt, type SettingPath } from './setting-path.js'
import { readTlsFiles, type TlsPaths } from './tls-files.js'

const fileSchema = z.string().min(1)

/** How we connect to a server that speaks TLS. */
export const clientTlsSchema = z.strictObject({
  ca: fileSchema
    .optional()
    .describe('PEM file of the CAs that may sign its certificate; default: those of the system.'),
  cert: fileSchema.optional().describe('PEM file of our own certificate, where the server asks for one.'),
  key: fileSchema.optional().describe('PEM file of the key of `cert`.'),
  passphrase: z
    .string()
    .min(1)
    .optional()
    .describe('Of a key that is locked. Write ${NAME} or ${file:PATH}, not the passphrase itself.'),
  servername: z
    .string()
    .regex(/^[^\s:/@]+$/, 'must be a name or an address, without port')
    .optional()
    .describe('Name that its certificate must bear, where that is not the one we connect to.'),
})
export type ClientTlsFiles = Readonly<z.infer<typeof clientTlsSchema>>

/** `true` is TLS with what the system trusts. */
export const tlsSwitchSchema = z.union([z.boolean(), clientTlsSchema])
export type TlsSwitch = boolean | ClientTlsFiles

/** Sections of PEM files that stand in one place. */
const fixedSections: readonly SettingPath[] = [
  ['sinks', 'kafka', 'ssl'],
  ['cluster', 'kafka', 'ssl'],
  ['cluster', 'tls'],
  ['cache', 'redis', 'tls'],
  ['models', 'cache', 'redis', 'tls'],
  ['tracing', 'tls'],
]

const fileKeys = ['ca', 'cert', 'key'] as const

type FileComplaint = Readonly<{ path: SettingPath; aboutKey: false; message: string; hint: string }>

/** All of them: of sinks there may be a list. */
function tlsSectionsOf(config: unknown): readonly SettingPath[] {
  const ofSinks = ['webhook', 'mqtt'].flatMap((kind): SettingPath[] => {
    const sections = getAt(config, ['sinks', kind])
    if (!Array.isArray(sections)) return [['sinks', kind, 'tls']]
    return sections.map((_, index) => ['sinks', kind, index, 'tls'])
  })
  return [...fixedSections, ...ofSinks]
}

/** Settings in which PEM files and files of tokens have absolute paths. @param base - folder that a setting's path starts from */
export function withAbsoluteTlsPaths<T>(config: T, base: (path: SettingPath) => string): T {
  const copy = structuredClone(config)
  const inSections = tlsSectionsOf(config).flatMap((section) => fileKeys.map((key) => [...section, key]))
  const tokenFiles = ['sinks', 'cluster'].map((section) => [section, 'kafka', 'sasl', 'tokenFile'])
  for (const path of [...inSections, ...tokenFiles]) {
    const file = getAt(config, path)
    if (typeof file === 'string') setAt(copy as Record<string, unknown>, path, resolve(base(path), file))
  }
  return copy
}

/** Everything that is wrong with the PEM files of settings. @param config - with absolute paths */
export function tlsFileComplaints(config: unknown): FileComplaint[] {
  return tlsSectionsOf(config).flatMap((section) => {
    const paths = getAt(config, section)
    if (typeof paths !== 'object' || paths === null) return []
    return readTlsFiles(paths as TlsPaths).faults.map(({ setting, message, hint }) => ({
      path: [...section, setting],
      aboutKey: false,
      message,
      hint,
    }))
  })
}
