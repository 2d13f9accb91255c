#!/usr/bin/env node
import '../lifecycle/no-telemetry.js'
import '../lifecycle/catch-warnings.js'
import { runBelowInit } from './first-process.js'
import { hangupWasIgnored } from './ignored-hangup.js'
import { isNodeNewEnough, NodeTooOldError } from './node-version.js'
import { StopSignals } from './stop-signals.js'
import { keepYoungGenerationSmall } from '../lifecycle/v8-flags.js'

const args = process.argv.slice(2)

if (!isNodeNewEnough(process.versions.node)) {
  const { code, message, hint } = new NodeTooOldError(process.versions.node)
  const text = args.includes('--json')
    ? JSON.stringify({ error: { code, message, hint } })
    : `error ${code}: ${message}\nhint: ${hint}`
  process.stderr.write(`${text}\n`)
  process.exit(2)
}

runBelowInit(process.argv.slice(1))

// Before the program is loaded, which takes a moment: a supervisor may change its mind at any time.
const signals = new StopSignals(process, hangupWasIgnored())

// `gantry models list | head` closes the pipe early; that is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})
// Now, since it grows while so much is loaded, and does not become smaller.
keepYoungGenerationSmall()
// Only now: what the commands are made of does not even load on an older Node.
const [{ run }, { processTerminal }, { withCudaLibraries }] = await Promise.all([
  import('./program.js'),
  import('./terminal.js'),
  import('../backends/onnxruntime/cuda-libraries.js'),
])
// For the processes of the service, which load them.
const { LD_LIBRARY_PATH } = withCudaLibraries(process.env)
if (LD_LIBRARY_PATH !== undefined) process.env['LD_LIBRARY_PATH'] = LD_LIBRARY_PATH
// Not `exitCode`: a timer that a client library left behind must not hold the terminal.
process.exit(await run(args, processTerminal(), signals))
