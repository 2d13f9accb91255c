import { describe, expect, it } from 'vitest'
import { missingFrom, ffmpegVersion } from '../../src/cli/doctor/ffmpeg.js'
import { exitCodeOf } from '../../src/cli/failure.js'
import { findingsTable } from '../../src/cli/findings.js'
import { table } from '../../src/cli/table.js'
import { wantsColor } from '../../src/cli/terminal.js'
import { RemoteError, type ErrorCode } from '../../src/errors.js'
import { fakeTerminal } from '../support/fake-terminal.js'

describe('colours', () => {
  it.each([
    ['come on a terminal', {}, true, true],
    ['stay out of pipes', {}, false, false],
    ['go with NO_COLOR', { NO_COLOR: '1' }, true, false],
    ['ignore an empty NO_COLOR', { NO_COLOR: '' }, true, true],
    ['come when forced', { FORCE_COLOR: '1' }, false, true],
    ['stay away from dumb terminals', { TERM: 'dumb' }, true, false],
  ])('%s', (_, env, isTTY, wanted) => {
    expect(wantsColor(env, { isTTY })).toBe(wanted)
  })

  it('do not shift the columns', () => {
    const findings = [{ subject: 'a', state: 'ok', detail: 'd', fix: 'f' }] as const
    const plain = findingsTable(findings, fakeTerminal({}, false))
    const colored = findingsTable(findings, fakeTerminal({}, true))
    expect(colored).not.toBe(plain)
    expect(colored.replaceAll(new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, 'g'), '')).toBe(plain)
  })
})

describe('table', () => {
  it('makes columns as wide as they need to be', () => {
    expect(
      table(
        ['A', 'B'],
        [
          ['long', 'x'],
          ['y', ''],
        ],
      ),
    ).toBe('A     B\nlong  x\ny')
  })

  it('cuts the last column to the width of the terminal', () => {
    expect(table(['A', 'B'], [['x', 'a long text']], 10)).toBe('A  B\nx  a lo...')
  })
})

describe('exit codes', () => {
  it.each<[ErrorCode, number]>([
    ['GANTRY_CONFIG', 2],
    ['GANTRY_USAGE', 2],
    ['GANTRY_PUBLIC_BIND', 2],
    ['GANTRY_MODEL_NOT_FOUND', 2],
    ['GANTRY_PORT_IN_USE', 1],
    ['GANTRY_ENVIRONMENT', 1],
    ['GANTRY_INTERNAL', 1],
  ])('%s is %i', (code, exit) => {
    expect(exitCodeOf(new RemoteError({ code, message: '', hint: '' }))).toBe(exit)
  })

  it('count a foreign error as one of running', () => {
    expect(exitCodeOf(new TypeError('x'))).toBe(1)
  })
})

describe('what ffmpeg says of itself', () => {
  it('has a version', () => {
    expect(ffmpegVersion('ffmpeg version 5.1.9-0+deb12u1 Copyright (c)')).toBe('5.1.9-0+deb12u1')
    expect(ffmpegVersion('sh: ffmpeg: not found')).toBeUndefined()
  })

  it('lists what it has as words', () => {
    expect(missingFrom(' T.. scale  V->V\n ... pad  V->V', ['scale', 'pad', 'select'])).toEqual(['select'])
  })
})
