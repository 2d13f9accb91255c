#!/usr/bin/env node
// `npm run smoke [-- VERSION ...]`: the smoke tests on other versions of Node, which come from the npm registry.
import './lib/right-node.mjs'
import { ensureTestNodes } from './lib/other-node.mjs'
import { say, setUp } from './lib/set-up.mjs'
import { runSmoke } from './lib/smoke.mjs'
import { countsLine } from './lib/test-counts.mjs'
import { smokeVersions } from './lib/test-tools.mjs'

setUp()
const given = process.argv.slice(2)
const versions = given.length > 0 ? given : smokeVersions
ensureTestNodes(versions, say).forEach(say)
const counts = runSmoke(versions)
console.log(countsLine(counts))
process.exit(counts.failed > 0 ? 1 : 0)
