import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from './root.mjs'
import { countPytest } from './test-counts.mjs'

const training = join(root, 'training')

/** The Python that has PyTorch and the rest of training/requirements.txt; undefined where nobody has installed it. */
function trainingPython() {
  const candidates = [process.env.GANTRY_TRAINING_PYTHON, join(training, '.venv/bin/python')]
  return candidates.find((path) => path && existsSync(path))
}

/**
 * Runs the tests of the training recipe where its packages are installed. They take gigabytes, so nobody but CI installs
 * them unasked.
 */
export function runTrainingTests(required) {
  const nothing = { passed: 0, failed: 0, skipped: 0, skippedNames: [] }
  if (!existsSync(training)) return nothing
  const python = trainingPython()
  if (!python) {
    console.log(
      'training tests were not run: install training/requirements.txt into training/.venv to run them',
    )
    return required ? { ...nothing, failed: 1 } : { ...nothing, skipped: 1, skippedNames: ['training/tests'] }
  }
  const folder = mkdtempSync(join(tmpdir(), 'gantry-pytest-'))
  const report = join(folder, 'junit.xml')
  const { status } = spawnSync(python, ['-m', 'pytest', '-q', `--junit-xml=${report}`], {
    cwd: training,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const counts = countPytest(report, status === 0)
  rmSync(folder, { recursive: true, force: true })
  return counts
}
