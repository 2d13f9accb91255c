import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { webhookHeaders } from '../../src/delivery/webhook/webhook-signature.js'
import { tempDir } from '../support/temp-dir.js'

const root = join(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/delivery.md'), 'utf8')

function snippet(language: string): string {
  const blocks = [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))]
  expect(blocks).toHaveLength(1)
  return blocks[0]?.[1] ?? ''
}

type Case = Readonly<{ headers: Record<string, string>; body: string; secret: string }>

const readers = [
  {
    language: 'TypeScript',
    file: 'reader.ts',
    text: () =>
      `${snippet('ts')}
import { readFileSync } from 'node:fs'
const cases = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as { headers: Record<string, string>; body: string; secret: string }[]
console.log(JSON.stringify(cases.map(({ headers, body, secret }) => isFromGantry(headers, Buffer.from(body), secret))))
`,
    command: [process.execPath, '--import', 'tsx'],
  },
  {
    language: 'Python',
    file: 'reader.py',
    text: () =>
      `${snippet('python')}
import json, sys
cases = json.load(open(sys.argv[1], encoding="utf-8"))
print(json.dumps([is_from_gantry(c["headers"], c["body"].encode(), c["secret"]) for c in cases]))
`,
    command: ['python3'],
  },
]

it.each(readers)(
  'S36: the $language of docs/delivery.md tells what is ours from what is not',
  ({ file, text, command }) => {
    const secret = `whsec_${Buffer.from('0123456789abcdef01234567').toString('base64')}`
    const unpadded = `whsec_${Buffer.from('0123456789').toString('base64').replace(/=+$/, '')}`
    const plain = 'any text, ümlauts too'
    const body = '{"cameraId":"dock-1","label":"größer"}'
    const signed = (secrets: readonly string[], atMs = Date.now()) =>
      webhookHeaders('msg_1', Buffer.from(body), secrets, atMs)
    const right: Case[] = [
      { headers: signed([secret]), body, secret },
      { headers: signed([plain]), body, secret: plain },
      { headers: signed([unpadded]), body, secret: unpadded },
      { headers: signed([plain, secret]), body, secret },
    ]
    const wrong: Case[] = [
      { headers: signed([secret]), body: body.replace('dock-1', 'dock-2'), secret },
      { headers: signed([secret]), body, secret: plain },
      { headers: signed([secret], Date.now() - 600_000), body, secret },
      { headers: { ...signed([secret]), 'webhook-id': 'msg_2' }, body, secret },
      { headers: { ...signed([secret]), 'webhook-signature': 'v1,AAAA v2,x' }, body, secret },
      { headers: signed([]), body, secret },
      { headers: {}, body, secret },
    ]
    const folder = tempDir()
    writeFileSync(join(folder, file), text())
    writeFileSync(join(folder, 'cases.json'), JSON.stringify([...right, ...wrong]))
    const [program = '', ...options] = command
    const run = spawnSync(program, [...options, join(folder, file), join(folder, 'cases.json')], {
      cwd: root,
      encoding: 'utf8',
    })
    expect(run.stderr).toBe('')
    expect(JSON.parse(run.stdout)).toEqual([...right.map(() => true), ...wrong.map(() => false)])
  },
)
