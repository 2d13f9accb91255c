#!/usr/bin/env node
// `npm start`: set-up, then `gantry demo` with the arguments given here.
import './lib/right-node.mjs'
import { join } from 'node:path'
import { root } from './lib/root.mjs'
import { runToItsEnd } from './lib/run-to-its-end.mjs'
import { setUp } from './lib/set-up.mjs'

setUp()
await runToItsEnd(process.execPath, [join(root, 'dist/cli/main.js'), 'demo', ...process.argv.slice(2)])
