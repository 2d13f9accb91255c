import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { encoderArguments, type EncodedClip } from '../../src/sources/ffmpeg-command.js'
import { RenderError } from '../errors.js'

/** ffmpeg with raw RGBA on its stdin and an H.264 file behind it; baseline structure, as cameras send it (no B frames). */
export class Encoder {
  readonly #ended: Promise<void>
  #stderr = ''

  private constructor(readonly child: ReturnType<typeof startFfmpeg>) {
    child.stderr.on('data', (data: Buffer) => (this.#stderr = (this.#stderr + data.toString()).slice(-2000)))
    // A broken pipe is told by the exit code, with ffmpeg's own words.
    child.stdin.on('error', () => undefined)
    this.#ended = new Promise((resolve, reject) => {
      child.on('error', (error) => reject(new RenderError('ffmpeg did not start', error)))
      child.on('close', (code) =>
        code === 0 ? resolve() : reject(new RenderError(`ffmpeg ended with ${code}: ${this.#stderr}`)),
      )
    })
    this.#ended.catch(() => undefined)
  }

  static open(options: EncodedClip): Encoder {
    return new Encoder(startFfmpeg(options))
  }

  /** Resolves when the pipe has room again. `rgba` must not change until then. */
  async write(rgba: Buffer): Promise<void> {
    if (!this.child.stdin.write(rgba)) await Promise.race([once(this.child.stdin, 'drain'), this.#ended])
  }

  /** @throws RenderError `GANTRY_ENVIRONMENT` with ffmpeg's last words if the file is not complete. */
  async finish(): Promise<void> {
    this.child.stdin.end()
    await this.#ended
  }

  abort(): void {
    this.child.kill('SIGKILL')
  }
}

function startFfmpeg(options: EncodedClip) {
  return spawn('ffmpeg', encoderArguments(options), {
    stdio: ['pipe', 'ignore', 'pipe'],
  })
}
