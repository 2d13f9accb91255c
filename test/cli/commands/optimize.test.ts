import { spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { existsSync, readFileSync, readdirSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { run } from '../../../src/cli/program.js'
import { type SignalSource, StopSignals } from '../../../src/cli/stop-signals.js'
import { parseModelConfig } from '../../../src/repository/model-config-text.js'
import type { OptimizeReport } from '../../../src/tools/optimize/optimize-report.js'
import { fakeTerminal } from '../../support/fake-terminal.js'
import { mainScript } from '../../support/gantry-process.js'
import { redLine, setOf } from '../../support/label-sets.js'
import { addSubOnnx } from '../../support/model-repository.js'
import { addModel } from '../../support/onnx-models.js'
import { redPicture, redRepository } from '../../support/red-pictures.js'
import { tempDir } from '../../support/temp-dir.js'

const env = { GANTRY__INFERENCE__INSTANCES: '1' }
/** Two configurations of one form, in short windows. */
const small = [
  ...['--forms', 'float32', '--threads', '1', '--spinning', 'off', '--graph', 'all', '--arena', 'on'],
  ...['--execution', 'sequential', '--instances', '1', '--batches', '1,2', '--delays', '0'],
  ...['--rounds', '1', '--window-ms', '50'],
]
const brief = [...small, '--brief']

/** @param onProgress - each line of progress, and what raises Ctrl-C. */
async function optimize(args: readonly string[], onProgress?: (text: string, interrupt: () => void) => void) {
  const terminal = fakeTerminal(env)
  const heard = new EventEmitter()
  const source = Object.assign(heard, { exit: () => undefined }) as unknown as SignalSource
  const rewrite = (text: string) => onProgress?.(text, () => void heard.emit('SIGINT'))
  const code = await run(
    ['optimize', ...args],
    onProgress === undefined ? terminal : { ...terminal, rewrite },
    new StopSignals(source),
  )
  return { code, stdout: terminal.stdout(), stderr: terminal.stderr() }
}

async function folders() {
  const repository = redRepository()
  const [work, pictures] = [join(tempDir(), 'work'), tempDir()]
  writeFileSync(join(pictures, '0.png'), await redPicture({ widthPx: 64, heightPx: 64 }, 250))
  return { repository, work, args: ['red', '-r', repository, '--work', work, '--frames', pictures] }
}

function journalKeys(work: string): string[] {
  return readFileSync(join(work, 'journal.jsonl'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{"key":') && line.endsWith('}'))
    .map((line) => (JSON.parse(line) as { key: string }).key)
}

describe('gantry optimize', () => {
  it('has help with examples on stdout', async () => {
    const { code, stdout, stderr } = await optimize(['--help'])
    expect([code, stderr]).toEqual([0, ''])
    for (const text of [
      'Usage: gantry optimize',
      '--max-p99',
      '--max-drop',
      '--trace',
      '--apply',
      'Examples:',
    ])
      expect(stdout).toContain(text)
  })

  it('writes the best of a space with its figures, once', async () => {
    const { repository, work, args } = await folders()
    const set = await setOf({
      'data.yaml': 'val: images\nnames: [red]\n',
      'images/0.png': 250,
      'labels/0.txt': redLine(0),
    })
    const data = ['--data', set, '--max-p99', '5000']
    const first = await optimize([...args, ...small, ...data, '--json'])
    expect([first.code, first.stderr]).toEqual([0, ''])
    const report = JSON.parse(first.stdout) as OptimizeReport
    expect(report).toMatchObject({
      model: 'red',
      configurations: 2,
      exhaustive: true,
      interrupted: false,
      forms: [{ name: 'original', accuracy: { kind: 'map', value: expect.closeTo(1, 6) as number } }],
      accuracyBy: { kind: 'map' },
      limits: { p99Ms: 5_000, mapDrop: 0.01 },
      result: { name: 'red_optimized', path: join(repository, 'red_optimized') },
    })
    expect(report.command).toContain('gantry optimize red --repository')
    expect(report.tried).toHaveLength(2)
    for (const { worth } of report.tried) {
      expect(worth!.perSecond).toBeGreaterThan(0)
      expect(worth!.peakBytes).toBeGreaterThan(10 * 1024 ** 2)
    }
    expect(report.steps[0]?.name).toBe('baseline')
    expect(report.best!.throughput.median).toBeCloseTo(report.steps.at(-1)!.measured.throughput.median, -1)
    expect(report.roofline?.peaks.float32).toBeGreaterThan(1e9)

    const written = readFileSync(join(repository, 'red_optimized', 'config.pbtxt'), 'utf8')
    expect(parseModelConfig(written, 'config.pbtxt')).toMatchObject({
      max_batch_size: report.best!.configuration.maxBatch,
      instance_group: [{ count: 1, kind: 'KIND_CPU' }],
    })
    expect(readdirSync(work)).toEqual(expect.arrayContaining(['report.html', 'report.json', 'results.csv']))
    const rows = readFileSync(join(work, 'results.csv'), 'utf8').trim().split('\n')
    expect(rows).toHaveLength(3)
    expect(rows[0]).toMatch(/^form,provider,intraOpThreads,.*inferencesPerSecond,p50Ms,p99Ms/)
    const page = readFileSync(join(work, 'report.html'), 'utf8')
    expect(page).toContain('What each step gained')
    expect(page).not.toMatch(/(src|href)="(?!data:)/)

    // What was measured is not measured again, and what is there is not written over.
    const keys = journalKeys(work)
    expect(new Set(keys).size).toBe(keys.length)
    const again = await optimize([...args, ...small, ...data, '--name', 'other'])
    expect(again.code).toBe(0)
    expect(journalKeys(work)).toEqual(keys)
    expect(again.stdout).toContain('best: ')
    expect(await optimize([...args, ...small, ...data])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('red_optimized is there already') as string,
    })
    const changed = await optimize([...args, ...small, ...data, '--name', 'third', '--batches', '1'])
    expect(changed).toMatchObject({ code: 2 })
    expect(changed.stderr).toContain('GANTRY_OPTIMIZE_STATE')
    expect(journalKeys(work)).toEqual(keys)
  }, 120_000)

  it('R56: goes on where it was killed, at any moment, with nothing measured twice', async () => {
    const { repository, work, args } = await folders()
    const command = [mainScript, 'optimize', ...args, ...brief, '--quiet']
    for (const lines of [2, 4]) {
      const child = spawn(process.execPath, command, { stdio: 'ignore', env: { ...process.env, ...env } })
      const ended = once(child, 'exit')
      onTestFinished(() => void child.kill('SIGKILL'))
      await reached(work, lines)
      child.kill('SIGKILL')
      await ended
    }
    const before = journalKeys(work)
    const { code, stderr } = await optimize([...args, ...brief])
    expect([code, stderr]).toEqual([0, expect.stringContaining('report: ') as string])
    const keys = journalKeys(work)
    expect(keys.slice(0, before.length)).toEqual(before)
    expect(new Set(keys).size).toBe(keys.length)
    expect(existsSync(join(repository, 'red_optimized', '1', 'model.onnx'))).toBe(true)
    // Nothing that was half written is left.
    expect(readdirSync(repository).sort()).toEqual(['red', 'red_optimized'])
  }, 120_000)

  it('R56: tells and keeps what it has after Ctrl-C, and ends with 130', async () => {
    const { repository, work, args } = await folders()
    const { code, stderr } = await optimize([...args, ...brief], (text, interrupt) => {
      if (text.startsWith('trial 2')) interrupt()
    })
    expect(code).toBe(130)
    expect(stderr).toContain('the same command goes on from here')
    const report = JSON.parse(readFileSync(join(work, 'report.json'), 'utf8')) as OptimizeReport
    expect([report.interrupted, report.tried.length, report.best]).toEqual([true, 1, undefined])
    expect(existsSync(join(work, 'report.html'))).toBe(true)
    expect(readdirSync(repository)).toEqual(['red'])
  }, 60_000)

  it('R56: says what is nearest where nothing keeps the limits, and writes no model', async () => {
    const { repository, work, args } = await folders()
    const { code, stderr, stdout } = await optimize([...args, ...brief, '--max-p99', '0.001'])
    expect(code).toBe(1)
    expect(stderr).toMatch(
      /GANTRY_OPTIMIZE_LIMITS: none of 2 configurations keeps the limits: .* p99 [\d.]+ ms of 0\.001/,
    )
    expect(stdout).toContain('FORM')
    expect(readdirSync(repository)).toEqual(['red'])
    expect(readFileSync(join(work, 'results.csv'), 'utf8').trim().split('\n')).toHaveLength(3)
  }, 60_000)

  it('R56: says what broke the limits where the best broke them only when they were measured again', async () => {
    const { repository, work, args } = await folders()
    const limited = [...args, ...brief, '--max-p99', '60000']
    expect((await optimize(limited)).code).toBe(0)
    // As a machine leaves it that became busy in between.
    const journal = join(work, 'journal.jsonl')
    const slow = readFileSync(journal, 'utf8')
      .split('\n')
      .map((line) => (line.startsWith('{"key":"final') ? line.replace(/"p99":[\d.]+/g, '"p99":7e7') : line))
    writeFileSync(journal, slow.join('\n'))
    const { code, stderr } = await optimize([...limited, '--name', 'other'])
    expect(code).toBe(1)
    expect(stderr).toMatch(
      /did not when they were measured again: the nearest, .*, has p99 70000\.0 ms of 60000\n/,
    )
    expect(stderr).toContain('--restart')
    expect(readdirSync(repository).sort()).toEqual(['red', 'red_optimized'])
  }, 60_000)

  it('tries arrivals that were recorded', async () => {
    const { args } = await folders()
    const trace = join(tempDir(), 'trace.json')
    const atMs = Array.from({ length: 40 }, (_, index) => Math.floor(index / 4) * 50 + (index % 4))
    writeFileSync(trace, JSON.stringify({ gantryTrace: 1, cameras: ['a'], seconds: 0.5, atMs }))
    const { code, stdout } = await optimize([...args, ...brief, '--trace', trace, '--json'])
    expect(code).toBe(0)
    const report = JSON.parse(stdout) as OptimizeReport
    expect(report.load).toMatchObject({ kind: 'trace', cameras: 1 })
    expect(report.load.perSecond).toBeGreaterThan(60)
    expect(report.load.perSecond).toBeLessThan(100)
    expect(report.best).toBeDefined()
  }, 60_000)

  const wrong: readonly (readonly [string, readonly string[], number, RegExp])[] = [
    ['a space without a configuration', ['--threads', '512'], 2, /no configuration is left to be tried/],
    ['a value that is none', ['--instances', 'many'], 2, /--instances is "many"/],
    ['a provider that is not here', ['--providers', 'tensorrt'], 2, /--providers tensorrt: /],
    ['limits of mAP without a set', ['--min-map', '0.5'], 2, /mAP is of a set with labels/],
    ['a set that is not there', ['--data', '/nowhere'], 2, /\/nowhere/],
    ['pictures that are not there', ['--frames', '/nowhere'], 2, /\/nowhere is not there/],
    ['a trace that is not there', ['--trace', '/nowhere.json'], 1, /\/nowhere.json/],
    ['a service that is not there', ['--trace', 'http://127.0.0.1:9'], 1, /GANTRY_SERVER_UNREACHABLE/],
    [
      'a service that shall take it and is not there',
      ['--apply', 'http://127.0.0.1:9'],
      1,
      /GANTRY_SERVER_UNREACHABLE/,
    ],
  ]
  it.each(wrong)('refuses %s before anything is measured', async (_, flags, exit, message) => {
    const { repository, work, args } = await folders()
    const { code, stderr, stdout } = await optimize([...args, ...brief, ...flags])
    expect([code, stdout]).toEqual([exit, ''])
    expect(stderr).toMatch(message)
    expect(stderr).toContain('hint: ')
    expect(readdirSync(repository)).toEqual(['red'])
    const known = existsSync(join(work, 'journal.jsonl')) ? journalKeys(work) : []
    expect(known.filter((key) => key.startsWith('trial') || key.startsWith('reference'))).toEqual([])
  })

  it('refuses labels that are none of the model', async () => {
    const { args } = await folders()
    const set = await setOf({
      'data.yaml': 'val: images\nnames: [green]\n',
      'images/0.png': 1,
      'labels/0.txt': '',
    })
    expect(await optimize([...args, ...brief, '--data', set])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('GANTRY_LABELS') as string,
    })
  })

  it('searches a model that finds nothing by what its steps prove', async () => {
    const repository = tempDir()
    addModel(repository, 'two', { onnx: addSubOnnx() })
    const work = join(tempDir(), 'work')
    const { code, stdout } = await optimize(['two', '-r', repository, '--work', work, ...brief, '--json'])
    expect(code).toBe(0)
    expect((JSON.parse(stdout) as OptimizeReport).accuracyBy).toBeUndefined()
  }, 60_000)
})

/** Waits until the journal has so many lines. */
async function reached(work: string, lines: number): Promise<void> {
  const journal = join(work, 'journal.jsonl')
  const enough = () => existsSync(journal) && journalKeys(work).length >= lines
  const changed = new EventEmitter()
  const parent = watch(join(work, '..'), { recursive: true }, () => changed.emit('change'))
  try {
    while (!enough()) await once(changed, 'change')
  } finally {
    parent.close()
  }
}
