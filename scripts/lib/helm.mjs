import { existsSync } from 'node:fs'
import { goProgram, goProgramPath } from './go-programs.mjs'
import { onPath } from './system-tools.mjs'

const module = 'helm.sh/helm/v3/cmd/helm@v3.22.0'

/** A helm: the one that {@link ensureHelm} built, else one of this machine; undefined where there is none. */
export function helmProgram() {
  const own = goProgramPath(module)
  if (existsSync(own)) return own
  return onPath('helm') ? 'helm' : undefined
}

/** Builds it by Go where this machine has none. Returns a line for each thing that is missing. */
export function ensureHelm(say) {
  if (helmProgram() !== undefined) return []
  const missing = 'missing: helm (tests of the chart)'
  if (!onPath('go'))
    return [`${missing}. Install it (https://helm.sh/docs/intro/install/), or Go, which builds it`]
  try {
    goProgram(module, say)
    return []
  } catch (error) {
    return [`${missing}: ${error.message}`]
  }
}
