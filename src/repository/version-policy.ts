import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ModelConfigError } from './errors.js'
import type { ModelConfig, VersionPolicy } from './model-config.js'

/** Each has instances of its own. */
const mostVersions = 64

/** What of the versions of a model is served. */
export type Versions = Readonly<{
  /** Ascending. */
  served: readonly number[]
  /** Named by the policy, and not there. */
  absent: readonly number[]
  /** A sentence for each that is absent, and for each folder that is no version though it looks like one. */
  notes: readonly string[]
}>

/**
 * The versions in the folder of a model.
 *
 * @param dir - holds the folders of the versions.
 * @param needsFile - whether a version has a file; one without a file need have no folder, and is 1 then.
 * @throws ModelConfigError where none of those that the policy names is there, or too many are to be served
 */
export function versionsIn(
  dir: string,
  { name: model = '', version_policy: policy }: ModelConfig,
  needsFile: boolean,
): Versions {
  const folders = readdirSync(dir).filter(
    (name) => /^\d{1,15}$/.test(name) && statSync(join(dir, name)).isDirectory(),
  )
  const found = folders
    .filter((name) => !name.startsWith('0'))
    .map(Number)
    .sort((a, b) => a - b)
  // git does not keep empty folders.
  const there = found.length === 0 && !needsFile ? [1] : found
  const served = versionsServed(policy, there)
  const absent = (policy?.specific?.versions ?? []).filter((version) => !there.includes(version))
  const missing = absent.map((version) => missingText(model, version))
  if (absent.length > 0 && served.length === 0)
    throw new ModelConfigError(
      `version_policy.specific.versions: ${missing.join('; ')}; none of those that are named is there`,
      there.length === 0
        ? `Put the model into ${join(dir, String(absent[0]))}.`
        : `Put the model into ${join(dir, String(absent[0]))}, or name one of: ${there.join(', ')}.`,
    )
  if (served.length > mostVersions)
    throw new ModelConfigError(
      `version_policy: model ${model} has ${served.length} versions to serve in ${dir}; each has instances of its own`,
      `Serve at most ${mostVersions} of them.`,
    )
  const zeros = folders
    .filter((name) => name.startsWith('0'))
    .map((name) => `folder "${name}" is not served: a version is a number from 1, without zeros before it`)
  return { served, absent, notes: [...missing.map((text) => `version_policy: ${text}`), ...zeros] }
}

/** In Triton's words. */
export function missingText(model: string, version: number): string {
  return `version ${version} is specified for model '${model}', but the version directory is not present`
}

/** Those of a policy: the latest one where it says nothing. @param found - ascending. */
function versionsServed(policy: VersionPolicy | undefined, found: readonly number[]): readonly number[] {
  if (policy?.all !== undefined) return found
  if (policy?.specific !== undefined) {
    const wanted = policy.specific.versions
    return found.filter((version) => wanted.includes(version))
  }
  return found.slice(-Math.max(1, policy?.latest?.num_versions ?? 1))
}
