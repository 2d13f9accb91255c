import { existsSync, readFileSync } from 'node:fs'
import { GantryError } from '../errors.js'
import { installation } from '../lifecycle/installation.js'

/** The line of Node that Gantry is best run on. */
export const bestNode = 24

/** Oldest version that Gantry runs on, such as `22.16.0`: that of package.json. */
export function oldestNode(): string {
  const { engines } = JSON.parse(readFileSync(`${installation}package.json`, 'utf8')) as {
    engines: { node: string }
  }
  return engines.node.replace('>=', '')
}

/** Whether `version`, such as `24.1.0`, is at least `oldest`. */
export function isNodeNewEnough(version: string, oldest = oldestNode()): boolean {
  const [have, need] = [version, oldest].map((text) => text.split('.').map(Number)) as [number[], number[]]
  const differing = need.findIndex((part, at) => have[at] !== part)
  return differing === -1 || (have[differing] ?? 0) > (need[differing] ?? 0)
}

/** This Node lacks what Gantry is built on. */
export class NodeTooOldError extends GantryError {
  readonly code = 'GANTRY_ENVIRONMENT'
  readonly hint: string
  constructor(version: string) {
    super(`Node ${version} is too old: Gantry needs ${oldestNode()} or newer, best ${bestNode}`)
    this.name = 'NodeTooOldError'
    const brought = `${installation}.node/bin`
    this.hint = existsSync(`${brought}/node`)
      ? `Put the one that \`npm start\` brought first: export PATH="${brought}:$PATH"`
      : `Install Node ${bestNode}: https://nodejs.org/, a version manager, or the npm package "node".`
  }
}
