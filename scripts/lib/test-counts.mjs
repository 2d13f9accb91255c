import { existsSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { root } from './root.mjs'

/** @typedef {{ passed: number, failed: number, skipped: number, skippedNames: string[] }} Counts */

/** @type {Counts} */
const none = { passed: 0, failed: 0, skipped: 0, skippedNames: [] }

/**
 * Counts of a vitest JSON report. A file that failed before its first test, an error outside of every test and a run that
 * left no report each count as one failure.
 *
 * @returns {Counts}
 */
export function countVitest(reportPath, succeeded) {
  if (!existsSync(reportPath)) return { ...none, failed: 1 }
  const { testResults } = JSON.parse(readFileSync(reportPath, 'utf8'))
  const tests = testResults.flatMap((file) =>
    file.assertionResults.map((test) => ({ ...test, file: file.name })),
  )
  const passed = tests.filter(({ status }) => status === 'passed').length
  const failedTests = tests.filter(({ status }) => status === 'failed').length
  const skipped = tests.filter(({ status }) => status !== 'passed' && status !== 'failed')
  const brokenFiles = testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some(({ status }) => status === 'failed'),
  ).length
  const failed = failedTests + brokenFiles
  return {
    passed,
    failed: failed === 0 && !succeeded ? 1 : failed,
    skipped: skipped.length,
    skippedNames: skipped.map(({ file, fullName }) => `${relative(root, file)}: ${fullName}`),
  }
}

/**
 * Counts of pytest's JUnit report.
 *
 * @returns {Counts}
 */
export function countPytest(reportPath, succeeded) {
  if (!existsSync(reportPath)) return { ...none, failed: 1 }
  const xml = readFileSync(reportPath, 'utf8')
  const number = (name) => Number(new RegExp(`<testsuite [^>]*\\b${name}="(\\d+)"`).exec(xml)?.[1] ?? 0)
  const failed = number('failures') + number('errors')
  const skipped = number('skipped')
  const skippedNames = [...xml.matchAll(/<testcase classname="([^"]*)" name="([^"]*)"[^>]*><skipped/g)].map(
    ([, file, name]) => `training ${file}: ${name}`,
  )
  return {
    passed: number('tests') - failed - skipped,
    failed: failed === 0 && !succeeded ? 1 : failed,
    skipped,
    skippedNames,
  }
}

/**
 * @param {Counts[]} results
 * @returns {Counts}
 */
export function sum(results) {
  return results.reduce(
    (total, result) => ({
      passed: total.passed + result.passed,
      failed: total.failed + result.failed,
      skipped: total.skipped + result.skipped,
      skippedNames: [...total.skippedNames, ...result.skippedNames],
    }),
    none,
  )
}

/** @param {Pick<Counts, 'passed' | 'failed' | 'skipped'>} counts */
export function countsLine({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`
}
