import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { ImageInvalidError } from '../../../src/sources/source-errors.js'
import { runBatch } from '../../../src/tools/batch/run-batch.js'
import {
  batchOptions,
  bytesScorer,
  itemsOf,
  jsonLines,
  makePictures,
  scoreBytes,
  ServerAwayError,
} from '../../support/batch-runs.js'
import { tempDir } from '../../support/temp-dir.js'
import { makeClip } from '../../support/video-clips.js'

/** How often it is killed at most: each start takes half a second. */
const mostKills = Number(process.env['GANTRY_KILLS'] ?? 6)

const child = join(import.meta.dirname, '../../support/batch-child.mjs')

describe('runBatch', () => {
  it('scores every picture of a folder once, and says so', async () => {
    const dir = tempDir()
    const pictures = makePictures(join(dir, 'in'), 30)
    const out = join(dir, 'out.jsonl')
    const told: number[] = []
    const summary = await runBatch(
      batchOptions({ inputs: [pictures], out, progress: ({ filesDone }) => told.push(filesDone) }),
    )
    expect(summary).toMatchObject({
      pictures: 30,
      errors: 0,
      files: 30,
      filesDone: 30,
      complete: true,
      scored: 30,
    })
    expect(new Set(itemsOf(out)).size).toBe(30)
    expect(itemsOf(out)).toContain(join(pictures, 'below/3.jpg'))
    expect(jsonLines(out).reduce((sum, { detections }) => sum + detections.length, 0)).toBe(
      summary.detections,
    )
    expect(told.at(-1)).toBe(30)
    expect(existsSync(`${out}.errors.jsonl`)).toBe(false)
  })

  it('does nothing again where all is done, and everything with `restart`', async () => {
    const dir = tempDir()
    const options = { inputs: [makePictures(join(dir, 'in'), 5)], out: join(dir, 'out.jsonl') }
    await runBatch(batchOptions(options))
    const text = readFileSync(options.out, 'utf8')
    expect(await runBatch(batchOptions(options))).toMatchObject({
      before: true,
      complete: true,
      scored: 0,
      pictures: 5,
    })
    expect(readFileSync(options.out, 'utf8')).toBe(text)
    expect(await runBatch(batchOptions({ ...options, restart: true }))).toMatchObject({
      before: false,
      scored: 5,
    })
    expect(itemsOf(options.out)).toHaveLength(5)
  })

  it('writes over no file that is not its own', async () => {
    const dir = tempDir()
    const out = join(dir, 'out.jsonl')
    writeFileSync(out, 'mine')
    const options = batchOptions({ inputs: [makePictures(join(dir, 'in'), 2)], out })
    await expect(runBatch(options)).rejects.toMatchObject({ code: 'GANTRY_BATCH_STATE' })
    expect(readFileSync(out, 'utf8')).toBe('mine')
  })

  it('R53: collects errors, one for each picture at fault, and goes on', async () => {
    const dir = tempDir()
    const pictures = makePictures(join(dir, 'in'), 12)
    const out = join(dir, 'out.jsonl')
    symlinkSync(join(dir, 'nothing'), join(pictures, 'gone.jpg'))
    writeFileSync(
      join(dir, 'list'),
      [`${pictures}/1.jpg`, `${pictures}/absent.jpg`, '', `${pictures}/2.jpg`].join('\n'),
    )
    const scorer = bytesScorer((picture) => {
      if (picture.kind === 'file' && Buffer.from(picture.bytes).toString() === 'picture 2')
        throw new ImageInvalidError('it is torn')
      return scoreBytes(picture)
    })
    const summary = await runBatch(batchOptions({ inputs: [`@${join(dir, 'list')}`, pictures], out, scorer }))
    expect(summary).toMatchObject({ files: 15, pictures: 12, errors: 3, complete: true })
    const errors = readFileSync(`${out}.errors.jsonl`, 'utf8').trim().split('\n')
    expect(errors.map((line) => (JSON.parse(line) as { code: string }).code).sort()).toEqual([
      'GANTRY_BATCH_INPUT',
      'GANTRY_IMAGE_INVALID',
      'GANTRY_IMAGE_INVALID',
    ])
  })

  it('waits for a server that is away, and stops in the end with what is done', async () => {
    const dir = tempDir()
    const pictures = makePictures(join(dir, 'in'), 20)
    const out = join(dir, 'out.jsonl')
    let [calls, away] = [0, false]
    const scorer = bytesScorer((picture) => {
      if (away || (calls += 1) === 3) throw new ServerAwayError()
      away = calls === 12
      return scoreBytes(picture)
    })
    await expect(
      runBatch(batchOptions({ inputs: [pictures], out, scorer, patienceMs: 300 })),
    ).rejects.toMatchObject({
      code: 'GANTRY_BATCH_STOPPED',
      hint: expect.stringContaining('goes on') as string,
    })
    const before = itemsOf(out).length
    expect(before).toBeGreaterThan(5)
    expect(before).toBeLessThan(20)
    expect(await runBatch(batchOptions({ inputs: [pictures], out }))).toMatchObject({
      pictures: 20,
      scored: 20 - before,
    })
    expect(new Set(itemsOf(out)).size).toBe(20)
  })

  it('finishes what is begun when it is told to end, and goes on from there', async () => {
    const dir = tempDir()
    const pictures = makePictures(join(dir, 'in'), 40)
    const out = join(dir, 'out.jsonl')
    const stop = new AbortController()
    let scored = 0
    const scorer = bytesScorer((picture) => {
      if ((scored += 1) === 10) stop.abort()
      return scoreBytes(picture)
    })
    const cut = await runBatch(batchOptions({ inputs: [pictures], out, scorer, signal: stop.signal }))
    expect(cut).toMatchObject({ complete: false, pictures: scored })
    expect(itemsOf(out)).toHaveLength(scored)
    expect(await runBatch(batchOptions({ inputs: [pictures], out }))).toMatchObject({
      complete: true,
      pictures: 40,
    })
    expect(new Set(itemsOf(out)).size).toBe(40)
    expect(itemsOf(out)).toHaveLength(40)
  })

  it.each([
    [
      'the model',
      { scorer: bytesScorer(scoreBytes, 'another') },
      /model was bytes:1 \(0\), now bytes:1 \(another\)/,
    ],
    ['the sample rate', { sampleFps: 1 }, /fps was 5, now 1/],
    ['a threshold', { settings: { scoreThreshold: '0.5' } }, /scoreThreshold was not set, now 0.5/],
  ])('refuses to go on when %s is not what it was', async (_, changed, words) => {
    const dir = tempDir()
    const inputs = [makePictures(join(dir, 'in'), 5)]
    const out = join(dir, 'out.jsonl')
    await runBatch(batchOptions({ inputs, out }))
    await expect(runBatch(batchOptions({ inputs, out, ...changed }))).rejects.toMatchObject({
      code: 'GANTRY_BATCH_STATE',
      message: expect.stringMatching(words) as string,
      hint: expect.stringContaining('--restart') as string,
    })
  })

  it('R53: says that the disk is full, and does it all when there is room', async () => {
    const dir = tempDir()
    const options = { inputs: [makePictures(join(dir, 'in'), 10)], out: join(dir, 'out.jsonl') }
    mkdirSync(`${options.out}.batch`)
    symlinkSync('/dev/full', join(`${options.out}.batch`, 'run.json.tmp'))
    await expect(runBatch(batchOptions(options))).rejects.toMatchObject({
      code: 'GANTRY_ENVIRONMENT',
      message: expect.stringContaining('the disk is full') as string,
    })
    expect(await runBatch(batchOptions(options))).toMatchObject({ complete: true, pictures: 10 })
  })

  it('R52: cuts off what was written and not counted when it was killed', async () => {
    const dir = tempDir()
    const options = { inputs: [makePictures(join(dir, 'in'), 40)], out: join(dir, 'out.jsonl') }
    const stop = new AbortController()
    let scored = 0
    const scorer = bytesScorer((picture) => {
      if ((scored += 1) === 10) stop.abort()
      return scoreBytes(picture)
    })
    await runBatch(batchOptions({ ...options, scorer, signal: stop.signal }))
    // A kill between the output and the state that counts it, in the middle of a line.
    const [done = ''] = readFileSync(options.out, 'utf8').split('\n')
    appendFileSync(options.out, `${done}\n`.repeat(100) + done.slice(0, 40))
    expect(await runBatch(batchOptions(options))).toMatchObject({ complete: true, pictures: 40 })
    expect(itemsOf(options.out)).toHaveLength(40)
    expect(new Set(itemsOf(options.out)).size).toBe(40)
  })

  it('R52: has no picture missing and none twice after any number of kills', async () => {
    const dir = tempDir()
    const pictures = makePictures(join(dir, 'in'), 400)
    const clip = await makeClip(join(dir, 'clip.mp4'), { seconds: 20, widthPx: 160, heightPx: 90 })
    const reference = join(dir, 'reference.csv')
    const whole = await runBatch(batchOptions({ inputs: [pictures, clip], out: reference }))
    expect(whole.pictures).toBeGreaterThan(490)
    const out = join(dir, 'out.csv')
    let kills = 0
    for (;;) {
      const run = spawn(process.execPath, [child, pictures, out, clip], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const ended = once(run, 'exit')
      run.stdout.once(
        'data',
        () => kills < mostKills && void delay(Math.random() * 400).then(() => run.kill('SIGKILL')),
      )
      const [code] = (await ended) as [number | null]
      if (code === 0) break
      expect(code).toBeNull()
      kills += 1
    }
    expect(kills).toBeGreaterThan(2)
    const sorted = (path: string) => readFileSync(path, 'utf8').trim().split('\n').sort()
    expect(sorted(out)).toEqual(sorted(reference))
  }, 120_000)
})
