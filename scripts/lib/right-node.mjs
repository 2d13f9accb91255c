// The first import of every script that a person starts: on a Node that is too old for Gantry, it brings one that is not into the clone
// and goes on with that. Nothing here or in what it imports may need a newer Node than 16.
import { delimiter, dirname } from 'node:path'
import { bestNode, nodeProblem } from './node-version.mjs'
import { bringOwnNode } from './other-node.mjs'
import { runToItsEnd } from './run-to-its-end.mjs'

const say = (line) => process.stderr.write(`[set-up] ${line}\n`)

const problem = nodeProblem()
if (problem) {
  let told = false
  const goOn = (how) => {
    if (!told) say(`${problem}; ${how}`)
    told = true
  }
  const node = bringOwnNode(bestNode, (name) =>
    goOn(`bringing Node ${bestNode} into .node/ (npm package ${name}) and going on with it ...`),
  )
  if (!node) {
    say(
      `${problem}. It could not be brought from the npm registry: install Node ${bestNode} (https://nodejs.org/, or nvm).`,
    )
    process.exit(1)
  }
  goOn(`going on with Node ${bestNode} in .node/`)
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ''}` }
  await runToItsEnd(node, [...process.execArgv, ...process.argv.slice(1)], env)
}
