import { StringDecoder } from 'node:string_decoder'

/** Longest line kept; ffmpeg prints side data of any size on one line. */
const maxLineChars = 2_000

/** Cuts a byte stream into lines; what is too long is cut off. */
export class LineSplitter {
  readonly #decoder = new StringDecoder('utf8')
  #rest = ''

  constructor(readonly line: (text: string) => void) {}

  write(chunk: Buffer): void {
    const lines = (this.#rest + this.#decoder.write(chunk)).split(/[\n\r]+/)
    this.#rest = (lines.pop() ?? '').slice(0, maxLineChars)
    for (const line of lines) if (line !== '') this.line(line.slice(0, maxLineChars))
  }

  end(): void {
    if (this.#rest !== '') this.line(this.#rest)
    this.#rest = ''
  }
}
