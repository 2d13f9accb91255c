import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { run } from '../../../src/cli/program.js'
import { StopSignals, type StopSignal } from '../../../src/cli/stop-signals.js'
import type { TransformReport } from '../../../src/tools/transform/transform-model.js'
import { fakeTerminal } from '../../support/fake-terminal.js'
import { addModel, redDetector } from '../../support/onnx-models.js'
import { redPictures } from '../../support/test-pictures.js'
import { tempDir } from '../../support/temp-dir.js'

async function transform(...args: readonly string[]) {
  const terminal = fakeTerminal({ XDG_CACHE_HOME: tempDir() })
  const code = await run(['models', 'transform', ...args], terminal)
  return { code, stdout: terminal.stdout(), stderr: terminal.stderr() }
}

function repository(): string {
  const dir = tempDir()
  addModel(dir, 'red', { onnx: redDetector('uint8-nhwc'), config: 'max_batch_size: 4', labels: 'blue\nred' })
  return dir
}

describe('gantry models transform', () => {
  it('has help with an example on stdout', async () => {
    const { code, stdout, stderr } = await transform('--help')
    expect([code, stderr]).toEqual([0, ''])
    for (const text of ['Usage: gantry models transform', '--frames', 'batch=free', 'Example:', '--python'])
      expect(stdout).toContain(text)
  })

  it('tells people what it made and how it was proved, with progress beside it', async () => {
    const dir = repository()
    const { code, stdout, stderr } = await transform(
      'red',
      'nms',
      'batch=1',
      '-r',
      dir,
      '--frames',
      await redPictures(),
    )
    expect([code, stderr]).toEqual([0, '[transform] nms ...\n[transform] batch=1 ...\n'])
    expect(stdout).toContain(
      `${join(dir, 'red_nms_batch1')}: 0.0 MB, not checked by the ONNX checker (--check)`,
    )
    expect(stdout).toMatch(
      / {2}nms: detections that differ 0\.0, at most 0\.01, on 3 pictures of .*; 3 of 3 detections/,
    )
  })

  it('tells programs with --json, and writes a file where --out is one', async () => {
    const out = join(tempDir(), 'red.onnx')
    const { code, stdout, stderr } = await transform(
      'red',
      'nms',
      '-r',
      repository(),
      '-o',
      out,
      '--frames',
      await redPictures(),
      '--json',
    )
    expect([code, stderr]).toEqual([0, ''])
    const report = JSON.parse(stdout) as TransformReport
    expect(report).toMatchObject({
      model: 'red',
      path: out,
      steps: [{ step: 'nms', proof: { tolerance: 0.01 } }],
    })
    expect(existsSync(out)).toBe(true)
  })

  it.each([
    [['red', 'smaller'], '"smaller" is no step'],
    [['red', 'nms', '--score', '3'], '--score is "3"'],
    [['red', 'nms', '--name', '../x'], '"../x" cannot be the name of a model'],
    [['red', 'fold'], 'takes bytes already'],
    [['red', 'int8'], 'int8 needs pictures'],
    [['blue', 'nms'], 'blue'],
  ])('refuses %j', async (args, message) => {
    const dir = repository()
    const { code, stdout, stderr } = await transform(...args, '-r', dir)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(message)
    expect(stderr).toContain('hint')
    expect(readdirSync(dir)).toEqual(['red'])
  })

  it('R54: ends with 130 after Ctrl-C, and leaves nothing', async () => {
    const dir = repository()
    const heard = new Map<StopSignal, () => void>()
    const signals = new StopSignals({
      on: (signal, listener) => heard.set(signal, listener),
      off: (signal) => heard.delete(signal),
      exit: () => undefined,
    })
    const quiet = fakeTerminal({ XDG_CACHE_HOME: tempDir() })
    const terminal = { ...quiet, err: () => heard.get('SIGINT')?.() }
    expect(
      await run(
        ['models', 'transform', 'red', 'nms', 'batch=1', '-r', dir, '--frames', await redPictures()],
        terminal,
        signals,
      ),
    ).toBe(130)
    expect(quiet.stdout()).toBe('')
    expect(readdirSync(dir)).toEqual(['red'])
  })
})
