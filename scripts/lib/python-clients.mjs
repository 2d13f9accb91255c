import { join } from 'node:path'
import { keptPython, keptPythonPath } from './kept-python.mjs'
import { root } from './root.mjs'
import { onPath } from './system-tools.mjs'

const requirements = join(root, 'test/clients/python-clients.txt')

/** A Python with what the client package and the example consumer need; undefined where it is not installed. */
export function pythonClients() {
  return keptPythonPath('python-clients', requirements)
}

/** Installs it from PyPI. Returns a line for each thing that is missing. */
export function ensurePythonClients(say) {
  if (pythonClients() !== undefined) return []
  const why = 'tests of the client package and the consumer in Python'
  if (!onPath('python3')) return [`missing: python3 (${why}). Install it: sudo apt-get install python3-venv`]
  try {
    keptPython('python-clients', requirements, 'websockets and confluent-kafka', say)
    return []
  } catch (error) {
    return [`missing: packages from PyPI (${why}): ${error.message}`]
  }
}
