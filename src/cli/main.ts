#!/usr/bin/env node
import { run } from './program.js'
import { processTerminal } from './terminal.js'

// `gantry models list | head` closes the pipe early; that is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})
// Not `exitCode`: a timer that a client library left behind must not hold the terminal.
process.exit(await run(process.argv.slice(2), processTerminal()))
