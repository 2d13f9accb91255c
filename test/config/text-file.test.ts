import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { loadPipeline } from '../../src/config/load.js'
import { readTextFile } from '../../src/config/text-file.js'
import { tempDir } from '../support/temp-dir.js'

const mark = '\uFEFF'
const utf16be = (text: string) => Buffer.from(text, 'utf16le').swap16()

function file(content: string | Uint8Array, name = 'file.txt'): string {
  const path = join(tempDir(), name)
  writeFileSync(path, content)
  return path
}

describe('readTextFile', () => {
  it.each([
    ['UTF-8', 'é 背景\n'],
    ['UTF-8 behind a byte order mark', `${mark}é 背景\n`],
  ])('reads %s', (_, text) => {
    expect(readTextFile(file(text))).toBe('é 背景\n')
  })

  it.each([
    ['UTF-16 of Windows', Buffer.from(`${mark}helmet\r\n`, 'utf16le'), 'UTF-16'],
    ['UTF-16, the high byte first', utf16be(`${mark}helmet\r\n`), 'UTF-16'],
    ['UTF-16 without a byte order mark', Buffer.from('helmet\r\n', 'utf16le'), 'UTF-16'],
    ['UTF-16 without it, the high byte first', utf16be('helmet\r\n'), 'UTF-16'],
    ['UTF-32', Buffer.from([0xff, 0xfe, 0, 0, 0x68, 0, 0, 0]), 'UTF-32'],
  ])('refuses %s by its name', (_, bytes, encoding) => {
    expect(() => readTextFile(file(bytes))).toThrow(`it is ${encoding}`)
    expect(() => readTextFile(file(bytes))).toThrow('save it as UTF-8')
  })
})

describe('R66: files as editors on Windows write them', () => {
  it.each([
    ['YAML', 'pipeline.yaml', 'apiVersion: gantry/v1\r\nensemble: mine\r\n'],
    ['JSON', 'pipeline.json', '{\r\n  "apiVersion": "gantry/v1",\r\n  "ensemble": "mine"\r\n}\r\n'],
  ])('a pipeline file in %s is read behind a byte order mark, with CRLF', (_, name, text) => {
    expect(loadPipeline(file(mark + text, name)).config.ensemble).toBe('mine')
  })

  it('a pipeline file in UTF-16 is refused by name', () => {
    const path = file(Buffer.from(`${mark}apiVersion: gantry/v1\r\n`, 'utf16le'), 'pipeline.yaml')
    expect(() => loadPipeline(path)).toThrow(/pipeline\.yaml: cannot be read: it is UTF-16.*save it as UTF-8/)
  })

  it('a value in a file of its own is read without them', () => {
    const secret = file(`${mark}mine\r\n`, 'secret.txt')
    const env = { GANTRY__ENSEMBLE_FILE: secret }
    expect(loadPipeline(file(`apiVersion: gantry/v1\n`, 'pipeline.yaml'), { env }).config.ensemble).toBe(
      'mine',
    )
  })
})
