import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './root.mjs'

/** The version that Gantry is best run on; `.nvmrc` has it for version managers. */
export const bestNode = 24

/** Oldest version that Gantry runs on, `22.16.0`, as package.json has it. */
export const oldestNode = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).engines.node.replace(
  '>=',
  '',
)

/** What is wrong with this Node; undefined when it will do. */
export function nodeProblem(version = process.versions.node) {
  const [have, need] = [version, oldestNode].map((text) => text.split('.').map(Number))
  const differing = need.findIndex((part, at) => have[at] !== part)
  if (differing === -1 || have[differing] > need[differing]) return undefined
  return `Node ${version} is too old: Gantry needs ${oldestNode} or newer, best ${bestNode}`
}
