import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { choice, numberParameter } from '../../repository/parameter-choice.js'
import { ModelConfigError } from '../../repository/errors.js'
import { type GantryParameter, parameterOf } from '../../repository/model-config.js'
import type { BackendContext } from '../../runtime/backend.js'

/** Where a remote model is and how patient its callers are. */
export type KserveSettings = Readonly<{
  /** Of the model here, for people. */
  name: string
  /** `host:port` each. */
  addresses: readonly string[]
  model: string
  /** Empty: the server chooses. */
  version: string
  /** For a request with all its retries. */
  timeoutMs: number
  retries: number
  /** Between two looks at an address that did not answer. */
  probeMs: number
  tls: boolean
  /** PEM. */
  ca: Uint8Array | undefined
  token: string | undefined
  /** Most that the outputs of an answer may have, all together. */
  maxResponseBytes: number
}>

const day = 24 * 3_600_000

/**
 * Reads the `gantry.kserve_*` parameters. Files must lie in the model's folder, so that no configuration can send another file away.
 *
 * @throws ModelConfigError
 */
export function kserveSettings(context: BackendContext, maxResponseBytes = Infinity): KserveSettings {
  const { name, config } = context
  const text = (key: GantryParameter) => parameterOf(config, key)
  const number = (key: GantryParameter, fallback: number, min: number, max: number) =>
    numberParameter(name, config, key, fallback, { min, max })
  const tls = choice(name, config, 'gantry.kserve_tls', ['true', 'false']) === 'true'
  const token = fileOf(context, 'gantry.kserve_token_file')?.toString('utf8').trim()
  if (token !== undefined && !tls)
    throw new ModelConfigError(
      `model "${name}": gantry.kserve_token_file needs gantry.kserve_tls "true"`,
      'A token that is sent without TLS can be read on its way.',
    )
  return {
    name,
    addresses: addressesOf(name, text('gantry.kserve_addresses')),
    model: text('gantry.kserve_model') ?? name,
    version: text('gantry.kserve_version') ?? '',
    timeoutMs: number('gantry.kserve_timeout_ms', 10_000, 1, day),
    retries: Math.round(number('gantry.kserve_retries', 2, 0, 10)),
    probeMs: number('gantry.kserve_probe_ms', 2_000, 10, day),
    tls,
    ca: fileOf(context, 'gantry.kserve_ca_file'),
    token,
    maxResponseBytes,
  }
}

function addressesOf(model: string, text: string | undefined): readonly string[] {
  const addresses = (text ?? '').split(',').map((address) => address.trim())
  if (addresses.every((address) => /^[^\s:/]+:\d{1,5}$|^\[[0-9a-fA-F:]+\]:\d{1,5}$/.test(address)))
    return addresses
  throw new ModelConfigError(
    `model "${model}": gantry.kserve_addresses is "${text ?? ''}"`,
    'Write host:port, several with commas between them.',
  )
}

function fileOf({ name, config, versionDir }: BackendContext, key: GantryParameter): Buffer | undefined {
  const file = parameterOf(config, key)
  if (file === undefined) return undefined
  const hint = 'Name a file in the model folder.'
  if (basename(file) !== file)
    throw new ModelConfigError(`model "${name}": ${key} "${file}" is not a plain file name`, hint)
  try {
    return readFileSync(join(versionDir, '..', file))
  } catch (error) {
    throw new ModelConfigError(`model "${name}": ${key} "${file}" cannot be read`, hint, error)
  }
}
