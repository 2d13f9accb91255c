#!/usr/bin/env node
// Prints the folder of a Node of the best line: that of this machine, or one in .node/, which it brings first.
// PATH="$(node scripts/node-path.mjs):$PATH" npx gantry doctor
import { dirname } from 'node:path'
import { bestNode } from './lib/node-version.mjs'
import { bringOwnNode } from './lib/other-node.mjs'

const isBest = process.versions.node.startsWith(`${bestNode}.`)
const path = isBest ? process.execPath : bringOwnNode(bestNode)
if (path) console.log(dirname(path))
else console.error(`Node ${bestNode} could not be brought from the npm registry`)
process.exit(path ? 0 : 1)
