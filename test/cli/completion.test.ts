import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { completionShells } from '../../src/cli/completion.js'
import { run } from '../../src/cli/program.js'
import { fakeTerminal } from '../support/fake-terminal.js'
import { tempDir } from '../support/temp-dir.js'

async function gantry(...args: string[]) {
  const terminal = fakeTerminal({})
  const code = await run(args, terminal)
  return { code, stdout: terminal.stdout(), stderr: terminal.stderr() }
}

const there = (shell: string) => spawnSync(shell, ['-c', 'true']).status === 0

/** What the shell itself offers for a line, by the script of the program. */
const offered = {
  bash: (script: string, line: readonly string[]) => `
    source ${script}
    COMP_WORDS=(${line.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${line.length - 1}
    _gantry; printf '%s\\n' "\${COMPREPLY[@]}"`,
  // Its functions that show a list print it here: they work in its line editor alone.
  zsh: (script: string, line: readonly string[]) => `
    compdef() { :; }
    _files() { print -r -- '(files)'; }
    compadd() { shift; for word in "$@"; do [[ $word == \${words[CURRENT]}* ]] && print -r -- $word; done; return 0; }
    _describe() {
      [[ $1 == -o ]] && shift
      for each in "\${(@P)2}"; do [[ \${each%%:*} == \${words[CURRENT]}* ]] && print -r -- \${each%%:*}; done; return 0
    }
    source ${script}
    words=(${line.map((word) => `'${word}'`).join(' ')}); CURRENT=${line.length}
    _gantry`,
  fish: (script: string, line: readonly string[]) => `source ${script}; complete -C '${line.join(' ')}'`,
} as const

describe.each(completionShells)('gantry completion %s', (shell) => {
  let script: string
  beforeAll(async () => {
    const { code, stdout } = await gantry('completion', shell)
    expect(code).toBe(0)
    script = stdout
  })

  it.skipIf(!there(shell))('offers commands, flags and values where they belong', () => {
    const path = join(tempDir(), 'completion')
    writeFileSync(path, script)
    const words = (...line: string[]): string[] => {
      const { status, stdout, stderr } = spawnSync(
        shell,
        [...(shell === 'zsh' ? ['-f'] : []), '-c', offered[shell](path, ['gantry', ...line])],
        { encoding: 'utf8', cwd: tempDir() },
      )
      expect([status, stderr]).toEqual([0, ''])
      return stdout
        .split('\n')
        .map((text) => text.split('\t')[0] ?? '')
        .filter((text) => text !== '')
        .sort()
    }
    expect(words('mod')).toEqual(['models'])
    expect(words('--json', 'ser')).toEqual(['serve'])
    expect(words('models', '')).toEqual(
      expect.arrayContaining(['inspect', 'list', 'load', 'transform', 'unload']),
    )
    expect(words('models', '')).not.toContain('serve')
    expect(words('serve', '--http')).toEqual(['--http-port'])
    expect(words('perf', '--protocol', '')).toEqual(['grpc', 'http'])
    expect(words('gpu', 'install', '--libraries', 'mi')).toEqual(['missing'])
    expect(words('completion', 'z')).toEqual(['zsh'])
    expect(words('serve', '--js')).toEqual(['--json'])
  })
})

it('gantry completion names the shells it knows', async () => {
  const { code, stderr } = await gantry('completion', 'tcsh')
  expect([code, stderr]).toEqual([2, expect.stringMatching(/bash, zsh, fish/)])
})
