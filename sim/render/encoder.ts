import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { RenderError } from '../errors.js'
import { framesPerSecond } from '../world/clock.js'

export interface EncodeOptions {
  readonly path: string
  readonly widthPx: number
  readonly heightPx: number
  /** x264's constant quality; 23 is plain, 28 small. */
  readonly crf: number
  readonly maxKbps: number
}

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

  static open(options: EncodeOptions): Encoder {
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

function startFfmpeg({ path, widthPx, heightPx, crf, maxKbps }: EncodeOptions) {
  const input = [
    '-f',
    'rawvideo',
    '-pix_fmt',
    'rgba',
    '-s',
    `${widthPx}x${heightPx}`,
    '-r',
    `${framesPerSecond}`,
    '-i',
    'pipe:0',
  ]
  const codec = [
    '-c:v',
    'libx264',
    '-preset',
    'medium',
    '-threads',
    '2',
    '-crf',
    `${crf}`,
    '-maxrate',
    `${maxKbps}k`,
    '-bufsize',
    `${maxKbps * 2}k`,
    '-pix_fmt',
    'yuv420p',
    '-colorspace',
    'bt709',
    '-color_primaries',
    'bt709',
    '-color_trc',
    'bt709',
    '-vf',
    'scale=out_color_matrix=bt709',
    '-g',
    `${framesPerSecond * 2}`,
    '-bf',
    '0',
    '-movflags',
    '+faststart',
    '-fflags',
    '+bitexact',
    '-flags:v',
    '+bitexact',
  ]
  return spawn('ffmpeg', ['-hide_banner', '-loglevel', 'error', '-y', ...input, ...codec, path], {
    stdio: ['pipe', 'ignore', 'pipe'],
  })
}
