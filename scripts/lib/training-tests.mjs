import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
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
 * Starts the tests of the training recipe where its packages are installed. They take gigabytes, so nobody but CI installs
 * them unasked.
 *
 * @returns a promise of the counts; what they print comes when they have ended.
 */
export async function runTrainingTests(required) {
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
  const log = join(folder, 'log')
  const output = openSync(log, 'w')
  const child = spawn(python, ['-m', 'pytest', '-q', `--junit-xml=${report}`], {
    cwd: training,
    stdio: ['ignore', output, output],
  })
  closeSync(output)
  const [status] = await once(child, 'close')
  process.stdout.write(`\ntraining tests\n${readFileSync(log, 'utf8')}`)
  const counts = countPytest(report, status === 0)
  rmSync(folder, { recursive: true, force: true })
  return counts
}
