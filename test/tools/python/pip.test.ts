import { expect, it } from 'vitest'
import { pipFailure } from '../../../src/tools/python/pip.js'

const use = { target: 'python3 on this machine', kept: 'Nothing is lost.' }

it.each([
  [
    "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(1)': /simple/",
    'pip does not reach its package index (NewConnectionError)',
  ],
  ['ERROR: THESE PACKAGES DO NOT MATCH THE HASHES', 'what is needed was damaged on its way'],
  [
    'ERROR: Could not find a version that satisfies the requirement onnx==1.19.1 (from versions: none)',
    'has no onnx==1.19.1 for python3 on this machine',
  ],
  ['ERROR: the moon is full', 'what is needed cannot be downloaded: the moon is full'],
])('says what pip means by %j', (complaints, message) => {
  const failure = pipFailure('what is needed', complaints, use)
  expect(failure.code).toBe('GANTRY_ENVIRONMENT')
  expect(failure.message).toContain(message)
})
