/**
 * `npm run faults`: the tests of failures take the numbers and durations of the requirement (docs/failure-modes.md) instead of those
 * that fit into every run of the tests.
 */
export const fullLength = process.env.GANTRY_FULL_LENGTH === '1'
