import type { VersionPolicy } from './model-config.js'

/**
 * Versions a policy serves of those that are there: the latest one where it says nothing.
 *
 * @param found - ascending.
 * @returns ascending. Versions a policy names and nobody put there are left out.
 */
export function versionsServed(
  policy: VersionPolicy | undefined,
  found: readonly number[],
): readonly number[] {
  if (policy?.all !== undefined) return found
  if (policy?.specific !== undefined) {
    const wanted = policy.specific.versions
    return found.filter((version) => wanted.includes(version))
  }
  return found.slice(-Math.max(1, policy?.latest?.num_versions ?? 1))
}
