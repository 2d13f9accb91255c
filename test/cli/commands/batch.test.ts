import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parse } from 'yaml'
import { run } from '../../../src/cli/program.js'
import type { BatchSummary } from '../../../src/tools/batch/run-batch.js'
import { jsonLines } from '../../support/batch-runs.js'
import { fakeTerminal } from '../../support/fake-terminal.js'
import { GantryProcess } from '../../support/gantry-process.js'
import { redPicture, redRepository } from '../../support/red-pictures.js'
import { startS3 } from '../../support/s3-server.js'
import { servedRed } from '../../support/served-red.js'
import { tempDir } from '../../support/temp-dir.js'
import { until } from '../../support/until.js'
import { makeClip } from '../../support/video-clips.js'

const root = join(import.meta.dirname, '../../..')

async function batch(...args: readonly string[]) {
  return batchWith({}, ...args)
}

async function batchWith(env: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const terminal = fakeTerminal(env)
  const code = await run(['batch', ...args], terminal)
  return { code, stdout: terminal.stdout(), stderr: terminal.stderr() }
}

/** Pictures of one colour, `count` of them. */
async function redFolder(count: number): Promise<string> {
  const dir = join(tempDir(), 'in')
  mkdirSync(dir)
  const first = join(dir, '1.png')
  writeFileSync(first, await redPicture({ widthPx: 64, heightPx: 64 }, 200))
  for (let index = 2; index <= count; index += 1) copyFileSync(first, join(dir, `${index}.png`))
  return dir
}

describe('gantry batch', () => {
  it('has help with examples on stdout', async () => {
    const { code, stdout, stderr } = await batch('--help')
    expect([code, stderr]).toEqual([0, ''])
    for (const text of ['Usage: gantry batch', '--restart', '--fail-on-errors', 's3://', 'Examples:'])
      expect(stdout).toContain(text)
  })

  it.each([
    [['in'], /required option '-o, --out <file>'/],
    [['--out', 'o.jsonl'], /missing required argument 'inputs'/],
    [['absent', '--out', 'o.jsonl'], /input "absent" is not there/],
    [['in', '--out', 'o.xlsx'], /names no format/],
    [['in', '--out', 'o.csv', '--fps', 'often'], /--fps is "often"/],
    [['in', '--out', 'o.csv', '--labels', 'l.txt'], /--labels is of a server/],
  ])('refuses %j with exit code 2', async (args, words) => {
    const { code, stderr } = await batch(...args)
    expect(stderr).toMatch(words)
    expect(code).toBe(2)
    expect(existsSync('o.jsonl.batch')).toBe(false)
  })

  it('scores pictures and a video by a real model, tells what it did, and collects what is no picture', async () => {
    const dir = tempDir()
    const pictures = await redFolder(5)
    writeFileSync(join(pictures, 'torn.jpg'), 'no picture')
    const clip = await makeClip(join(dir, 'clip.mp4'), {
      seconds: 2,
      widthPx: 128,
      heightPx: 64,
      source: 'color=red:s=128x64:d=2:r=10',
    })
    const out = join(dir, 'out.jsonl')
    const model = ['--model', 'red', '--repository', redRepository()]
    const { code, stdout, stderr } = await batch(
      pictures,
      clip,
      '--fps',
      '5',
      '--out',
      out,
      ...model,
      '--json',
    )
    expect(stderr).toBe('')
    expect(code).toBe(0)
    const summary = JSON.parse(stdout) as BatchSummary
    expect(summary).toMatchObject({ files: 7, errors: 1, complete: true })
    const schema = JSON.parse(readFileSync(join(root, 'schemas/gantry.batch.v1.json'), 'utf8')) as object
    const ajv = new Ajv2020({ strict: false })
    addFormats.default(ajv)
    for (const line of jsonLines(out)) expect(ajv.validate(schema, line), ajv.errorsText()).toBe(true)
    const [picture] = jsonLines(out).filter(({ item }) => item.endsWith('1.png'))
    expect(picture).toMatchObject({ widthPx: 64, heightPx: 64, model: { name: 'red', version: '1' } })
    expect(picture?.detections).toMatchObject([{ label: 'red', boxPx: { x1: 22, y1: 12, x2: 42, y2: 20 } }])
    const [frame] = jsonLines(out).filter(({ frame }) => frame === 1)
    // The letterbox of a picture twice as wide: half the size, a quarter of the height above it.
    expect(frame).toMatchObject({ widthPx: 128, heightPx: 64, timeMs: 0 })
    expect(frame?.detections[0]?.boxPx.x1).toBeCloseTo(44, 3)
    expect(readFileSync(`${out}.errors.jsonl`, 'utf8')).toContain('GANTRY_IMAGE_INVALID')

    const failing = await batch(
      pictures,
      '--out',
      join(dir, 'b.csv'),
      ...model,
      '--fail-on-errors',
      '--quiet',
    )
    expect(failing).toMatchObject({ code: 1, stdout: '' })
    const nothing = await batch(join(pictures, 'torn.jpg'), '--out', join(dir, 'c.csv'), ...model)
    expect(nothing.code).toBe(1)
    expect(nothing.stdout).toMatch(
      /0 pictures of 1 files, 0 detections in .*c\.csv; 1 without a result, told in/,
    )
  })

  it('scores by a running server as by the model here, whose names of classes it takes, and says so', async () => {
    const pictures = await redFolder(3)
    const dir = tempDir()
    const { url } = await servedRed()
    const scored = async (name: string, ...args: readonly string[]) => {
      const out = join(dir, name)
      const { code, stderr } = await batch(pictures, '--out', out, '--model', 'red', ...args)
      const notes = stderr.split('\n').filter((line) => line.startsWith('note: '))
      const found = jsonLines(out).map(({ item, model, detections }) => ({ item, model, detections }))
      return { code, notes, found: found.sort((a, b) => a.item.localeCompare(b.item)) }
    }
    const own = await scored('own.jsonl', '--repository', redRepository())
    expect([own.notes, own.found.length]).toEqual([[], 3])
    const known = await scored('known.jsonl', '--url', url, '--repository', redRepository())
    const note = expect.stringContaining('red: names of the classes are those of ') as string
    expect(known).toEqual({ ...own, notes: [note] })
    // As label maps of TensorFlow have them, too.
    const labels = join(dir, 'labels.pbtxt')
    writeFileSync(labels, 'item { id: 0 name: "blue" } item { id: 1 name: "red" }')
    expect(await scored('map.jsonl', '--url', url, '--labels', labels)).toEqual(own)
  })

  it('ends with 130 after Ctrl-C, keeps what is done, and goes on', async () => {
    const dir = tempDir()
    const pictures = await redFolder(800)
    const out = join(dir, 'out.parquet')
    const args = ['batch', pictures, '--out', out, '--model', 'red', '--repository', redRepository()]
    const cut = new GantryProcess(args)
    onTestFinished(() => cut.kill())
    const state = join(`${out}.batch`, 'run.json')
    const done = () =>
      (JSON.parse(readFileSync(state, 'utf8')) as { counts: { pictures: number } }).counts.pictures
    await until('some pictures', () => done() > 0, 20_000)
    process.kill(-cut.pid, 'SIGINT')
    expect(await cut.ended()).toBe(130)
    expect(cut.stdout).toMatch(/files are left: the same command goes on/)
    const before = done()
    expect(before).toBeLessThan(800)
    expect(readFileSync(out).subarray(0, 4).toString()).toBe('PAR1')
    const { code, stdout } = await batch(...args.slice(1), '--json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ pictures: 800, scored: 800 - before, complete: true })
  }, 60_000)
})

describe('examples/batch', () => {
  type Container = Readonly<{ name: string; image: string; args: string[]; volumeMounts: { name: string }[] }>
  type CronJob = Readonly<{
    apiVersion: string
    kind: string
    metadata: { name: string }
    spec: {
      schedule: string
      concurrencyPolicy: string
      jobTemplate: {
        spec: {
          template: { spec: { restartPolicy: string; containers: Container[]; volumes: { name: string }[] } }
        }
      }
    }
  }>
  const field = /^(\*|\d+)([-/,]\d+)*$/

  it('has a CronJob of Kubernetes that is one, and runs a batch', () => {
    const { apiVersion, kind, metadata, spec } = parse(
      readFileSync(join(root, 'examples/batch/cronjob.yaml'), 'utf8'),
    ) as CronJob
    expect([apiVersion, kind]).toEqual(['batch/v1', 'CronJob'])
    expect(metadata.name).toMatch(/^[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?$/)
    expect(spec.schedule.split(' ').map((part) => field.test(part))).toEqual(Array(5).fill(true))
    expect(['Allow', 'Forbid', 'Replace']).toContain(spec.concurrencyPolicy)
    const pod = spec.jobTemplate.spec.template.spec
    expect(['OnFailure', 'Never']).toContain(pod.restartPolicy)
    const [container] = pod.containers
    expect(container?.args.join(' ')).toMatch(/ batch .* --out /)
    expect(container?.volumeMounts.map(({ name }) => name)).toEqual(pod.volumes.map(({ name }) => name))
  })

  it('has a line for cron that names only options there are', async () => {
    const lines = readFileSync(join(root, 'examples/batch/crontab'), 'utf8').split('\n')
    const [line = ''] = lines.filter((each) => each !== '' && !each.startsWith('#'))
    const parts = line.split(' ')
    expect(parts.slice(0, 5).map((part) => field.test(part))).toEqual(Array(5).fill(true))
    expect(line.replaceAll('\\%', '')).not.toContain('%')
    const { stdout } = await batch('--help')
    for (const [option] of line.matchAll(/--[a-z-]+/g)) expect(stdout).toContain(option)
  })

  it('scores a folder into an object of a store', async () => {
    const server = await startS3('plant')
    const [folder, state] = [await redFolder(3), join(tempDir(), 'state')]
    const args = [folder, '--repository', redRepository(), '-m', 'red', '--state', state, '--out']
    const out = 's3://plant/2026/red.jsonl'
    const done = await batchWith(server.env, ...args, out)
    expect([done.code, done.stdout]).toEqual([0, expect.stringContaining(`in ${out}`)])
    expect((await server.get('2026/red.jsonl')).toString().trimEnd().split('\n')).toHaveLength(3)
    const again = await batchWith(server.env, ...args, out)
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('nothing left to do')])
    const other = await batchWith(server.env, ...args, 's3://plant/2025/red.jsonl')
    expect([other.code, other.stderr]).toEqual([2, expect.stringContaining('s3://plant/2026/red.jsonl')])
  }, 60_000)
})
