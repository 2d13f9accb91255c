import { spawn } from 'node:child_process'

/** Browser, decoders and models share the cores of this machine. */
const withinMs = 60_000

/** What a command says, as a person would run it; it is ended once it has said what is wanted. */
export function saidBy(command: string, wanted: RegExp, env: NodeJS.ProcessEnv = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn('bash', ['-c', command], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    let said = ''
    const end = (): void => {
      // With what bash has started.
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
    }
    const timer = setTimeout(end, withinMs)
    for (const output of [child.stdout, child.stderr])
      output.setEncoding('utf8').on('data', (text: string) => {
        said += text
        if (wanted.test(said)) end()
      })
    child.on('error', reject)
    child.on('close', () => {
      clearTimeout(timer)
      if (wanted.test(said)) resolve(said)
      else reject(new Error(`${command}\nsaid: ${said}`))
    })
  })
}
