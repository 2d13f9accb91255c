import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { errorCodes, InternalError, RemoteError, toErrorRecord } from '../src/errors.js'

const page = join(import.meta.dirname, '../docs/errors.md')
const text = readFileSync(page, 'utf8')

describe('error codes', () => {
  it('are those of docs/errors.md, in the same order', () => {
    const documented = [...text.matchAll(/^\| `(GANTRY_\w+)` \|/gm)].map(([, code]) => code)
    expect(documented).toEqual([...errorCodes])
  })

  it('lead to runbooks that exist', () => {
    const links = [...text.matchAll(/\]\(([^)#]+)\)/g)].map(([, link = '']) => link)
    expect(links.filter((link) => !existsSync(join(dirname(page), link)))).toEqual([])
  })
})

describe('toErrorRecord', () => {
  it('keeps code, message and hint of our own errors over a border', () => {
    const record = { code: 'GANTRY_CURSOR', message: 'm', hint: 'h' } as const
    expect(toErrorRecord(new RemoteError(record))).toEqual(record)
  })

  it('makes a fault of anything else', () => {
    expect(toErrorRecord(new TypeError('x is not y'))).toMatchObject({
      code: 'GANTRY_INTERNAL',
      message: 'x is not y',
    })
    expect(toErrorRecord('just text').message).toBe('just text')
    expect(new InternalError('m', 'why').cause).toBe('why')
  })
})
