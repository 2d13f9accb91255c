import { EventEmitter } from 'node:events'
import { readFileSync, writeFileSync, readdirSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { run } from '../../../src/cli/program.js'
import { type SignalSource, StopSignals } from '../../../src/cli/stop-signals.js'
import type { Evaluation } from '../../../src/tools/eval/evaluation.js'
import { fakeTerminal } from '../../support/fake-terminal.js'
import { redLine, setOf } from '../../support/label-sets.js'
import { addModel, redDetector } from '../../support/onnx-models.js'
import { redRepository } from '../../support/red-pictures.js'
import { servedRed } from '../../support/served-red.js'
import { tempDir } from '../../support/temp-dir.js'

const data = 'val: images\nnames: [red, other]\n'
const env = { GANTRY__INFERENCE__INSTANCES: '1' }

/** @param onProgress - each line of progress, and what raises Ctrl-C. */
async function evaluate(args: readonly string[], onProgress?: (text: string, interrupt: () => void) => void) {
  const terminal = fakeTerminal(env)
  const heard = new EventEmitter()
  const source = Object.assign(heard, { exit: () => undefined }) as unknown as SignalSource
  const rewrite = (text: string) => onProgress?.(text, () => void heard.emit('SIGINT'))
  const signals = new StopSignals(source)
  const code = await run(
    ['eval', ...args],
    onProgress === undefined ? terminal : { ...terminal, rewrite },
    signals,
  )
  return { code, stdout: terminal.stdout(), stderr: terminal.stderr() }
}

async function json(...args: readonly string[]): Promise<Evaluation> {
  const { code, stdout, stderr } = await evaluate([...args, '--json'])
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout) as Evaluation
}

/** Pictures of 64 x 64 that `red` finds one box in, all right but for one that has nothing on it. */
async function redSet(pictures = 5): Promise<string> {
  const files = Array.from({ length: pictures }, (_, index) => [
    [`images/${String(index).padStart(3, '0')}.png`, 250 - index * 5],
    [`labels/${String(index).padStart(3, '0')}.txt`, index === 1 ? '' : redLine(0)],
  ])
  return setOf(Object.fromEntries([['data.yaml', data], ...files.flat()]) as Record<string, string | number>)
}

describe('gantry eval', () => {
  it('has help with examples on stdout', async () => {
    const { code, stdout, stderr } = await evaluate(['--help'])
    expect([code, stderr]).toEqual([0, ''])
    for (const text of ['Usage: gantry eval', '--data', '--classes', '--precision', '--url', 'Examples:'])
      expect(stdout).toContain(text)
  })

  it('tells people what a model is worth, in words, tables, a CSV, JSON and a page', async () => {
    const set = await redSet()
    const out = tempDir()
    const file = (name: string) => join(out, name)
    const { code, stdout, stderr } = await evaluate([
      ...['red', '-r', redRepository(), '-d', set, '--precision', '0.8'],
      ...['--csv', file('a.csv'), '--save', file('a.json'), '--report', file('a.html')],
    ])
    expect(code).toBe(0)
    // Second best of five is wrong: up to a recall of a quarter all is right, from there on four of five.
    const map = ((26 + 75 * 0.8) / 101).toFixed(3)
    expect(stdout).toMatch(new RegExp(`^red:1 +5 +${map} +[\\d.]+-[\\d.]+ +${map} +${map}`, 'm'))
    expect(stdout).toMatch(
      new RegExp(`^red +4 +${map} +${map} +${map} +0\\.800 +1\\.000 +0\\.9\\d+ +1\\.000$`, 'm'),
    )
    expect(stderr).toContain('note: the model has no label for "other" of the set')
    expect(stderr).toContain('note: the set does not label "blue"')

    const [head, all, red, ...rest] = readFileSync(file('a.csv'), 'utf8').trim().split('\n')
    expect(head).toContain('model,class,truths,mAP50-95,AP50')
    expect(all).toMatch(/^red:1,all,4,0\.85/)
    expect(red).toMatch(/^red:1,red,4,0\.85.*,0\.8,1,0\.9/)
    expect(rest).toEqual([])
    const saved = JSON.parse(readFileSync(file('a.json'), 'utf8')) as Evaluation
    expect(saved).toMatchObject({ complete: true, labels: ['red'], set: { pictures: 5, format: 'yolo' } })
    expect(saved.models[0]).toMatchObject({
      model: { name: 'red:1', where: 'cpu' },
      confusion: [
        [4, 0],
        [1, 0],
      ],
    })
    const page = readFileSync(file('a.html'), 'utf8')
    expect(page).toContain('red 0.96, not there')
    expect(page).toContain('data:image/jpeg;base64,')
    expect(page).not.toMatch(/(src|href)="(?!data:)/)
    expect(page).not.toContain('<script')
    expect(readdirSync(out).sort()).toEqual(['a.csv', 'a.html', 'a.json'])
  })

  it('compares models on the same pictures', async () => {
    const dir = redRepository()
    addModel(dir, 'shy', {
      onnx: redDetector('uint8-nhwc'),
      config:
        'parameters { key: "gantry.input_size" value { string_value: "64x64" } } parameters { key: "gantry.color" value { string_value: "bgr" } }',
    })
    const { models } = await json('red', 'shy', '-r', dir, '-d', await redSet(8), '--bootstrap', '200')
    expect(models.map(({ model }) => model.name)).toEqual(['red:1', 'shy:1'])
    const [red, shy] = models
    // Blue is 0 in these pictures: what takes it for red finds nothing.
    expect(red!.summary.map).toBeGreaterThan(0.8)
    expect(shy!.summary.map).toBe(0)
    expect(red!.difference).toBeUndefined()
    expect(shy!.difference).toMatchObject({ better: 0, pictures: 8, map: -red!.summary.map! })
    expect(shy!.difference!.interval.low).toBeLessThanOrEqual(-red!.summary.map!)
    const both = ['red', 'shy', '-r', dir, '-d', await redSet(3)]
    const told = async (draws: string) => (await evaluate([...both, '--bootstrap', draws])).stdout
    expect(await told('10')).toMatch(/^shy:1: mAP -0\.\d+ against red:1, 95 % /m)
    expect(await told('0')).not.toContain('shy:1: ')
  })

  it('reads COCO labels and maps their names', async () => {
    const instances = {
      images: [0, 1].map((id) => ({ id, file_name: `${id}.png`, width: id === 0 ? 64 : 32, height: 64 })),
      annotations: [0, 1].map((id) => ({ image_id: id, category_id: 5, bbox: [22, 12, 20, 8], iscrowd: 0 })),
      categories: [{ id: 5, name: 'thing' }],
    }
    const dir = await setOf({ 'labels.json': JSON.stringify(instances), '0.png': 250, '1.png': 200 })
    const args = [
      'red',
      '-r',
      redRepository(),
      '-d',
      join(dir, 'labels.json'),
      '--map',
      'thing=red',
      '--bootstrap',
      '0',
    ]
    const { models, notes } = await json(...args)
    expect(models[0]!.summary).toMatchObject({
      map: expect.closeTo(1, 10) as number,
      ar1: 1,
      ap75: expect.closeTo(1, 10) as number,
    })
    expect(models[0]!.mapInterval).toBeUndefined()
    expect(notes).toContain('1 pictures have another size than their labels say, such as 1.png')
  })

  it('counts pictures that it cannot read, and fails where it can read none', async () => {
    const set = await redSet(3)
    writeFileSync(join(set, 'images/001.png'), 'no picture')
    const { complete, models, notes } = await json('red', '-r', redRepository(), '-d', set)
    expect([complete, models[0]!.pictures, models[0]!.unread.map(({ name }) => name)]).toEqual([
      true,
      2,
      ['images/001.png'],
    ])
    expect(notes.join('\n')).toContain(
      '1 pictures could not be read, such as images/001.png: picture cannot be used',
    )
    for (const name of ['000', '002']) writeFileSync(join(set, `images/${name}.png`), '')
    const { code, stdout, stderr } = await evaluate(['red', '-r', redRepository(), '-d', set])
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain('GANTRY_IMAGE_INVALID: none of 3 pictures can be read, such as images/')
  })

  it('R51: keeps what it has scored after Ctrl-C', async () => {
    const set = await redSet(60)
    const save = join(tempDir(), 'a.json')
    const args = ['red', '-r', redRepository(), '-d', set, '--parallel', '1', '--save', save]
    const { code, stdout } = await evaluate(args, (text, interrupt) => {
      if (/^red:1: 5 of 60 pictures/.test(text)) interrupt()
    })
    expect(code).toBe(130)
    expect(stdout).toMatch(/^red:1 +5 +0\.85/m)
    expect(JSON.parse(readFileSync(save, 'utf8'))).toMatchObject({
      complete: false,
      models: [{ pictures: 5, complete: false }],
    })
    const early = await evaluate(args, (_, interrupt) => interrupt())
    expect([early.code, early.stdout, early.stderr]).toEqual([130, '', ''])
  })

  it.skipIf(!existsSync('/dev/full'))('R51: tells the answer where the disk is full', async () => {
    const args = ['red', '-r', redRepository(), '-d', await redSet(), '--csv', '/dev/full']
    const { code, stdout, stderr } = await evaluate(args)
    expect(code).toBe(1)
    expect(stdout).toMatch(/^red:1 +5 +0\.85/m)
    expect(stderr).toContain('GANTRY_ENVIRONMENT: cannot write /dev/full: the disk is full')
  })

  it.each([
    ['a set that is not there', ['-d', '/nowhere'], 2, /GANTRY_LABELS: \/nowhere: no such file/],
    [
      'a class that is not there',
      ['--classes', 'rde'],
      2,
      /GANTRY_LABELS: --classes: nothing is called "rde"/,
    ],
    ['a model that is not there', ['--at', '0.2', 'gone'], 2, /GANTRY_MODEL_NOT_FOUND/],
    ['a number that is none', ['--score', 'much'], 2, /GANTRY_USAGE: --score is "much"/],
    ['a map that is none', ['--map', 'red'], 2, /GANTRY_USAGE: --map red/],
    ['a split that is none', ['--split', 'all'], 2, /GANTRY_USAGE/],
    ['what is of a server without one', ['--head', 'yolov8'], 2, /GANTRY_USAGE: --head is of a server/],
    [
      'labels that are not there',
      ['--url', 'http://127.0.0.1:9', '--labels', '/nowhere'],
      2,
      /GANTRY_USAGE: --labels: .*\/nowhere/,
    ],
    [
      'a folder that takes no report',
      ['--report', '/nowhere/a.html'],
      1,
      /GANTRY_ENVIRONMENT: cannot write \/nowhere\/a\.html/,
    ],
  ])('says before it scores what is wrong: %s', async (_, args, expected, message) => {
    const { code, stdout, stderr } = await evaluate([
      'red',
      '-r',
      redRepository(),
      '-d',
      await redSet(1),
      ...args,
      '--quiet',
    ])
    expect([code, stdout]).toEqual([expected, ''])
    expect(stderr).toMatch(message)
  })

  it('says which models there are, in words for who named one here', async () => {
    const { code, stderr } = await evaluate(['redd', '-r', redRepository(), '-d', await redSet(1)])
    expect([code, stderr]).toEqual([2, expect.stringContaining('hint: Did you mean red? It has: red.\n')])
  })

  it('needs a data set and a model', async () => {
    expect((await evaluate(['red'])).stderr).toContain("required option '-d, --data <path>' not specified")
    expect((await evaluate(['-d', 'x'])).stderr).toContain("missing required argument 'models'")
  })
})

describe('gantry eval --url', () => {
  it('scores what a server answers', async () => {
    const { url } = await servedRed()
    const labels = join(await setOf({ 'labels.txt': 'blue\nred\n' }), 'labels.txt')
    const args = ['red', '-d', await redSet(), '--bootstrap', '0']
    const { models } = await json(...args, '--url', url, '--labels', labels)
    const own = await json(...args, '-r', redRepository())
    expect(models[0]!.model).toMatchObject({ name: 'red:1', where: url })
    expect(models[0]!.summary).toEqual(own.models[0]!.summary)
    const known = await json(...args, '--url', url, '-r', redRepository())
    expect(known.models[0]!.summary).toEqual(own.models[0]!.summary)
    expect(known.notes.join('\n')).toContain('names of the classes are those of')
  })

  it('R51: tells what it has when the server goes away, and says when it is not there', async () => {
    const { url, stop } = await servedRed()
    const args = ['red', '-d', await redSet(60), '--url', url, '-r', redRepository()]
    const { code, stdout, stderr } = await evaluate([...args, '--parallel', '1'], (text) => {
      if (/^red:1: 5 of 60 pictures/.test(text)) void stop()
    })
    expect(code).toBe(1)
    expect(stdout).toMatch(/^red:1 +\d+ +0\.[89]/m)
    expect(stderr).toContain('GANTRY_SERVER_UNREACHABLE')
    const gone = await evaluate([...args, '--quiet'])
    expect([gone.code, gone.stdout]).toEqual([1, ''])
    expect(gone.stderr).toContain('GANTRY_SERVER_UNREACHABLE')
  })
})
