#!/usr/bin/env node
// Prepares this machine: npm packages, system packages, build. `--tests` adds what the tests talk to.
import './lib/right-node.mjs'
import { say, setUp } from './lib/set-up.mjs'
import { ensureTestTools } from './lib/test-tools.mjs'

setUp()
if (process.argv.includes('--tests')) {
  const missing = ensureTestTools(say)
  missing.forEach(say)
  process.exitCode = missing.length > 0 ? 1 : 0
}
