// Preloaded into a service (`NODE_OPTIONS=--import=...`): its wall clock goes wrong by the milliseconds in the file GANTRY_TEST_CLOCK.
import { readFileSync } from 'node:fs'

const TrueDate = Date
let readMs = -Infinity
let wrongByMs = 0

function offsetMs() {
  if (performance.now() - readMs < 20) return wrongByMs
  readMs = performance.now()
  try {
    wrongByMs = Number(readFileSync(process.env.GANTRY_TEST_CLOCK, 'utf8'))
  } catch {
    // Being written just now: what was known holds.
  }
  return wrongByMs
}

globalThis.Date = class Date extends TrueDate {
  constructor(...given) {
    if (given.length === 0) super(Date.now())
    else super(...given)
  }

  static now() {
    return TrueDate.now() + offsetMs()
  }
}
