import { atMost } from '../lifecycle/delay.js'
import type { Failure } from './failure-reason.js'
import type { CameraAnswer, HttpClient } from './http-client.js'
import { contentOf, contentStartBytes, isOnePicture, typeText, type HttpContent } from './http-content.js'
import { headerIn } from './http-head.js'
import type { PictureKind } from './picture-end.js'
import { PictureSplitter, PictureTooLargeError } from './picture-splitter.js'

/** Behind a picture of an answer that does not say where it ends: nothing more comes. */
const quietMs = 2_000

export type Snapshot = Readonly<{
  kind: PictureKind
  /** As the camera encoded it. */
  bytes: Buffer
  /** The answer ended before it. */
  isCut: boolean
}>

/** What came of one request: a picture, why none came, or that the URL leads to something else. */
export type Seen = Snapshot | Failure | Readonly<{ content: Exclude<HttpContent, 'snapshot'> }>

/**
 * Asks for one picture.
 *
 * @param ofStream - of an endless answer the first picture is wanted too.
 */
export async function readSnapshot(client: HttpClient, { ofStream = false } = {}): Promise<Seen> {
  const answer = await client.get()
  if ('reason' in answer) return answer
  try {
    return await new SnapshotReader(answer, ofStream).read()
  } catch (error) {
    if (error instanceof PictureTooLargeError) return { reason: error.message, retry: 'slow' }
    return { reason: `the answer cannot be read: ${(error as Error).message}`, retry: 'normal' }
  } finally {
    answer.leave()
  }
}

/** A body that is read but not decoded. */
class SnapshotReader {
  readonly #splitter: PictureSplitter
  #picture: Snapshot | undefined
  #start = Buffer.alloc(0)
  #isKnown = false

  constructor(
    readonly answer: CameraAnswer,
    readonly ofStream: boolean,
  ) {
    this.#splitter = new PictureSplitter(
      ({ bytes, ...rest }) => (this.#picture ??= { ...rest, bytes: Buffer.from(bytes) }),
      headerIn(answer.head, 'content-type'),
    )
  }

  /** @throws PictureTooLargeError; what unpacking has against the body */
  async read(): Promise<Seen> {
    const chunks = this.answer.body.bytes()[Symbol.asyncIterator]()
    for (;;) {
      const next = await this.#next(chunks)
      if (next === undefined || next.done === true) return this.#ended()
      const seen = this.#took(next.value)
      if (seen !== undefined) return seen
    }
  }

  #next(chunks: AsyncIterator<Buffer>): Promise<IteratorResult<Buffer> | undefined> {
    const { lengthBytes } = this.answer.body
    const isWhole = this.#picture !== undefined && lengthBytes === undefined
    return isWhole ? atMost(quietMs, chunks.next()) : chunks.next()
  }

  #took(chunk: Buffer): Seen | undefined {
    if (!this.#isKnown) {
      this.#start = Buffer.concat([this.#start, chunk.subarray(0, contentStartBytes)])
      if (this.#start.length >= contentStartBytes) {
        const other = this.#otherContent()
        if (other !== undefined) return other
      }
    }
    this.#splitter.write(chunk)
    if (this.ofStream) return this.#picture
    const { head, body } = this.answer
    if (this.#splitter.begun < 2 || isOnePicture(head, body.lengthBytes)) return undefined
    // A file of pictures has an end, and a pace that is for the decoder to guess.
    return { content: body.lengthBytes === undefined ? 'pictures' : 'media' }
  }

  #otherContent(): Seen | undefined {
    this.#isKnown = true
    const { head } = this.answer
    const content = contentOf(head, this.#start)
    if (content === 'words')
      return {
        reason: `the camera answers with text (${typeText(head)}), not with pictures: ask for the URL of its picture or stream`,
        retry: 'normal',
      }
    return content === 'snapshot' || (content === 'pictures' && this.ofStream) ? undefined : { content }
  }

  #ended(): Seen {
    if (!this.#isKnown) {
      const other = this.#otherContent()
      if (other !== undefined) return other
    }
    this.#splitter.end()
    if (this.#picture !== undefined) return this.#picture
    const { head } = this.answer
    const what = this.#start.length === 0 ? 'nothing' : typeText(head)
    return {
      reason: `the camera answers with ${what}, not with a picture (JPEG, PNG or WebP)`,
      retry: 'normal',
    }
  }
}
