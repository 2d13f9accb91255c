import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { run } from '../../../src/cli/program.js'
import type { SplitReport } from '../../../src/tools/split/split-model.js'
import { fakeTerminal } from '../../support/fake-terminal.js'
import { addModel, redDetector } from '../../support/onnx-models.js'
import { tempDir } from '../../support/temp-dir.js'

async function split(...args: readonly string[]) {
  const terminal = fakeTerminal({})
  const code = await run(['models', 'split', ...args], terminal)
  return { code, stdout: terminal.stdout(), stderr: terminal.stderr() }
}

function repository(): string {
  const dir = tempDir()
  addModel(dir, 'red', { onnx: redDetector('uint8-nhwc'), config: 'max_batch_size: 4' })
  addModel(dir, 'graph', {
    config: 'platform: "ensemble" ensemble_scheduling { step { model_name: "red" model_version: -1 } }',
  })
  return dir
}

describe('gantry models split', () => {
  it('has help on stdout', async () => {
    const { code, stdout, stderr } = await split('--help')
    expect([code, stderr]).toEqual([0, ''])
    for (const text of ['Usage: gantry models split', '--stages', '--gpus', '--tolerance'])
      expect(stdout).toContain(text)
  })

  it('tells people what it made', async () => {
    const dir = repository()
    const { code, stdout } = await split('red', '--repository', dir, '--stages', '2')
    expect(code).toBe(0)
    expect(stdout).toContain(`red_split in ${dir}: 2 stages, equal to the whole model on 3 random inputs`)
    expect(stdout).toMatch(/red_stage1: \d+ nodes, \d+ % of the work, [\d.]+ MB, cpu/)
    for (const name of ['red_stage1', 'red_stage2', 'red_split'])
      expect(existsSync(join(dir, name, 'config.pbtxt'))).toBe(true)
  })

  it('gives every stage the session options of the model', async () => {
    const dir = tempDir()
    const exact = 'parameters { key: "session.x64quantprecision" value { string_value: "1" } }'
    addModel(dir, 'red', { onnx: redDetector('uint8-nhwc'), config: `max_batch_size: 4 ${exact}` })
    expect((await split('red', '--repository', dir, '--stages', '2', '--runs', '1')).code).toBe(0)
    for (const stage of ['red_stage1', 'red_stage2'])
      expect(readFileSync(join(dir, stage, 'config.pbtxt'), 'utf8')).toContain(exact)
  })

  it('tells programs with --json, of a file as of a model', async () => {
    const out = tempDir()
    const file = join(tempDir(), 'red.onnx')
    writeFileSync(file, redDetector('uint8-nhwc'))
    const { code, stdout, stderr } = await split(
      file,
      '--out',
      out,
      '-n',
      '2',
      '--gpus',
      '0,1',
      '--runs',
      '1',
      '--json',
    )
    expect([code, stderr]).toEqual([0, ''])
    const report = JSON.parse(stdout) as SplitReport
    expect(report).toMatchObject({
      ensemble: 'red_split',
      dir: out,
      comparison: { runs: 1, largest: 0 },
      stages: [
        { name: 'red_stage1', device: 'gpu 0' },
        { name: 'red_stage2', device: 'gpu 1' },
      ],
    })
    expect(report.stages.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 6)
  })

  it.each([
    [['red'], "required option '-n, --stages <n>' not specified", 'GANTRY_USAGE'],
    [['red', '-n', '1'], '--stages is "1"', 'GANTRY_USAGE'],
    [['red', '-n', '2', '--gpus', 'a'], '--gpus is "a"', 'GANTRY_USAGE'],
    [['red', '-n', '2', '--tolerance', '2'], '--tolerance is "2"', 'GANTRY_USAGE'],
    [['red', '-n', '2', '--runs', '0'], '--runs is "0"', 'GANTRY_USAGE'],
    [['red', '-n', '60'], 'cannot be cut into 60 stages', 'GANTRY_MODEL_INVALID'],
    [['graph', '-n', '2'], 'model "graph" is a', 'GANTRY_MODEL_CONFIG'],
    [['absent', '-n', '2'], '"absent"', 'GANTRY_MODEL_NOT_FOUND'],
    [['absent.onnx', '-n', '2'], '"absent.onnx"', 'GANTRY_MODEL_NOT_FOUND'],
  ])('%j is refused', async (args, message, errorCode) => {
    const { code, stdout, stderr } = await split(...args, '--repository', repository())
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(`error ${errorCode}: `)
    expect(stderr).toContain(message)
    expect(stderr).toContain('hint: ')
  })

  it('wants a folder for the stages of a file', async () => {
    const file = join(tempDir(), 'red.onnx')
    writeFileSync(file, redDetector('uint8-nhwc'))
    const { code, stderr } = await split(file, '-n', '2')
    expect(code).toBe(2)
    expect(stderr).toContain('--out FOLDER')
  })
})
