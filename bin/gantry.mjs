#!/bin/sh
':' //; export GANTRY_IGNORED_SIGNALS="$(sed -n 's/^SigIgn:[[:space:]]*//p' /proc/$$/status 2>/dev/null)"; exec node "$0" "$@"
// The command `gantry`. It is here before anything is built, and executable: npx looks for it in this folder once, and remembers.
// A shell reads the line above, looks which signals are ignored (`nohup`), which nobody can know once Node runs, and starts it.
import { existsSync } from 'node:fs'

const main = new URL('../dist/cli/main.js', import.meta.url)

if (existsSync(main)) await import(main.href)
else {
  process.stderr.write('error: Gantry is not built\nhint: Run npm start, or npm ci && npm run build.\n')
  process.exitCode = 2
}
