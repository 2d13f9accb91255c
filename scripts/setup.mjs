#!/usr/bin/env node
// Prepares this machine: npm packages, system packages, build. `--tests` adds what the tests talk to.
import { say, setUp } from './lib/set-up.mjs'
import { ensureTools, testTools } from './lib/system-tools.mjs'
import { ensureTritonClients } from './lib/triton-clients.mjs'

setUp()
if (process.argv.includes('--tests')) {
  const missing = [...ensureTools(testTools, say), ...ensureTritonClients(say)]
  missing.forEach(say)
  process.exitCode = missing.length > 0 ? 1 : 0
}
