#!/usr/bin/env node
// `npm start`: set-up, then `gantry demo` with the arguments given here.
import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { join } from 'node:path'
import { root } from './lib/root.mjs'
import { setUp } from './lib/set-up.mjs'

setUp()
const gantry = spawn(process.execPath, [join(root, 'dist/cli/main.js'), 'demo', ...process.argv.slice(2)], {
  stdio: 'inherit',
})
// A terminal sends Ctrl-C to both of us; a supervisor tells only this process, so SIGTERM is passed on.
process.on('SIGINT', () => {})
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => gantry.kill(signal))
gantry.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal ?? 'SIGKILL']))
