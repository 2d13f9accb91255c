import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { listInputs } from '../../../../src/tools/batch/inputs/list-inputs.js'
import { tempDir } from '../../../support/temp-dir.js'

async function list(inputs: readonly string[], stdin = ''): Promise<string[]> {
  const s3 = () => {
    throw new Error('no store is named')
  }
  const found: string[] = []
  for await (const name of listInputs(inputs, { stdin: Readable.from([stdin]), s3 })) found.push(name)
  return found
}

/** A folder with pictures, a video, other things, and a name that looks like a pattern. */
function folder(): string {
  const dir = tempDir()
  for (const name of ['a/b', 'a/.hidden', 'c']) mkdirSync(join(dir, name), { recursive: true })
  for (const name of [
    '10.jpg',
    '2.JPG',
    'notes.txt',
    'a/x.png',
    'a/b/y.mp4',
    'a/.hidden/z.jpg',
    'c/[1].jpeg',
  ])
    writeFileSync(join(dir, name), '')
  symlinkSync(join(dir, '2.JPG'), join(dir, 'c/linked.jpg'))
  symlinkSync(dir, join(dir, 'c/circle'))
  return dir
}

describe('listInputs', () => {
  it('walks a folder: pictures and videos by name, not what is hidden, no circle', async () => {
    const dir = folder()
    const expected = ['2.JPG', '10.jpg', 'a/x.png', 'a/b/y.mp4', 'c/[1].jpeg', 'c/linked.jpg']
    expect(await list([dir])).toEqual(expected.map((name) => join(dir, name)))
  })

  it.each([
    ['*.jpg', ['10.jpg']],
    ['**/*.{png,mp4}', ['a/x.png', 'a/b/y.mp4']],
    ['*/x.png', ['a/x.png']],
    ['a/**', ['a/x.png', 'a/b/y.mp4']],
    ['c/[1].jpeg', ['c/[1].jpeg']],
  ])('takes the glob %s, and a file of that very name before it', async (pattern, expected) => {
    const dir = folder()
    expect(await list([join(dir, pattern)])).toEqual(expected.map((name) => join(dir, name)))
  })

  it('reads lists, also from standard input: files, folders, empty lines', async () => {
    const dir = folder()
    writeFileSync(join(dir, 'list'), `${dir}/10.jpg\r\n\n${dir}/absent.jpg\n${dir}/a\n`)
    const expected = ['10.jpg', 'absent.jpg', 'a/x.png', 'a/b/y.mp4'].map((name) => join(dir, name))
    expect(await list([`@${dir}/list`])).toEqual(expected)
    expect(await list(['-'], `${dir}/2.JPG\n`)).toEqual([`${dir}/2.JPG`])
  })

  it('R66: reads a list behind a byte order mark, and refuses UTF-16 by name', async () => {
    const dir = folder()
    writeFileSync(join(dir, 'list'), `\uFEFF${dir}/10.jpg\r\n${dir}/2.JPG\r\n`)
    expect(await list([`@${dir}/list`])).toEqual([`${dir}/10.jpg`, `${dir}/2.JPG`])
    writeFileSync(join(dir, 'list'), Buffer.from(`\uFEFF${dir}/10.jpg\r\n`, 'utf16le'))
    await expect(list([`@${dir}/list`])).rejects.toThrow(/is no text in UTF-8.*UTF-16/)
  })

  it.each([
    ['absent.jpg', /is not there/],
    ['@absent.txt', /list absent.txt cannot be read: ENOENT/],
    ['absent/*.jpg', /begins in absent, which is no folder/],
  ])('refuses %s', async (input, words) => {
    await expect(list([input])).rejects.toMatchObject({
      code: 'GANTRY_BATCH_INPUT',
      message: expect.stringMatching(words) as string,
    })
  })
})
