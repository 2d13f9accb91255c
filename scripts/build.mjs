#!/usr/bin/env node
// Builds what has changed: the service into dist/, the dashboard into dist/web. `--server` leaves the dashboard out.
import './lib/right-node.mjs'
import { BuildFailed, buildServer, buildWeb } from './lib/build.mjs'

try {
  buildServer()
  if (!process.argv.includes('--server')) buildWeb()
} catch (error) {
  if (!(error instanceof BuildFailed)) throw error
  console.error(error.message)
  process.exit(1)
}
