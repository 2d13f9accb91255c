#!/usr/bin/env node
// Prepares this machine: npm packages, system packages, build. `--tests` adds what the tests talk to.
import { say, setUp } from './lib/set-up.mjs'
import { ensureTools, testTools } from './lib/system-tools.mjs'

setUp()
if (process.argv.includes('--tests')) {
  const missing = ensureTools(testTools, say)
  missing.forEach(say)
  process.exitCode = missing.length > 0 ? 1 : 0
}
