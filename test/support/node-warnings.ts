import { isHarmless } from '../../src/lifecycle/node-warnings.js'

// Tests that use kafkajs in their own process warn of negative time-outs, as it does: what the service leaves out of its log is left out
// here too. All else is printed as Node does, with the place it comes from.
process.removeAllListeners('warning')
process.on('warning', (warning: Error) => {
  if (!isHarmless(warning))
    process.stderr.write(`(node:${process.pid}) ${warning.stack ?? warning.message}\n`)
})
