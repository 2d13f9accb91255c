import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs'

/** @see https://www.sqlite.org/fileformat2.html#walformat */
const headerBytes = 32
const frameHeaderBytes = 24
const magicOfLittleEndianSums = 0x377f0682
const magicOfBigEndianSums = 0x377f0683

/** A page as a commit wrote it. */
export type WalFrame = Readonly<{ page: number; /** Where the page begins in the log. */ at: number }>

type Frame = WalFrame & Readonly<{ endsCommit: boolean }>
type Sums = readonly [number, number]

/**
 * The log of an SQLite file (`-wal`) as it lies on the disk. SQLite itself reads it up to the first frame whose sums are not right, and
 * says nothing of what comes behind.
 */
export class WriteAheadLog {
  private constructor(
    readonly pageBytes: number,
    /** Of all commits, oldest first; also of those that SQLite does not see. */
    readonly frames: readonly WalFrame[],
    /** Whether there are commits that SQLite does not see. */
    readonly isBroken: boolean,
  ) {}

  /** @returns undefined where there is none, or nothing in it. Never more than one page in memory. */
  static read(path: string): WriteAheadLog | undefined {
    if (!existsSync(path)) return undefined
    const fd = openSync(path, 'r')
    try {
      return readLog(fd, fstatSync(fd).size)
    } finally {
      closeSync(fd)
    }
  }

  static of(pageBytes: number, frames: readonly Frame[], seen: number): WriteAheadLog {
    const commits = frames.slice(0, frames.findLastIndex(({ endsCommit }) => endsCommit) + 1)
    return new WriteAheadLog(pageBytes, commits, commits.length > seen)
  }
}

function readLog(fd: number, size: number): WriteAheadLog | undefined {
  const header = Buffer.alloc(headerBytes)
  if (readSync(fd, header, 0, headerBytes, 0) < headerBytes) return undefined
  const first = Buffer.alloc(frameHeaderBytes)
  if (readSync(fd, first, 0, frameHeaderBytes, headerBytes) < frameHeaderBytes) return undefined
  const isHeaderRight = isRight(header)
  const pageBytes = isHeaderRight ? header.readUInt32BE(8) : pageBytesOf(fd, size, first)
  if (pageBytes === undefined) return undefined
  const salt = isHeaderRight ? header.subarray(16, 24) : first.subarray(8, 16)
  let sums: Sums | undefined = isHeaderRight ? [header.readUInt32BE(24), header.readUInt32BE(28)] : undefined
  const isLittle = header.readUInt32BE(0) === magicOfLittleEndianSums
  const frames: Frame[] = []
  let seen = 0
  const frame = Buffer.alloc(frameHeaderBytes + pageBytes)
  for (let at = headerBytes; at + frame.length <= size; at += frame.length) {
    if (readSync(fd, frame, 0, frame.length, at) < frame.length) break
    const isOurs = frame.subarray(8, 16).equals(salt)
    const page = frame.readUInt32BE(0)
    const endsCommit = frame.readUInt32BE(4) > 0
    // Frames of an earlier round stand behind those of this one; or this one is damaged, and there are more behind it.
    if (!isOurs || page === 0) {
      sums = undefined
      continue
    }
    if (sums !== undefined) {
      const upTo = summed(
        summed(sums, frame.subarray(0, 8), isLittle),
        frame.subarray(frameHeaderBytes),
        isLittle,
      )
      const isWhole = upTo[0] === frame.readUInt32BE(16) && upTo[1] === frame.readUInt32BE(20)
      sums = isWhole ? upTo : undefined
    }
    frames.push({ page, at: at + frameHeaderBytes, endsCommit })
    if (sums !== undefined && endsCommit) seen = frames.length
  }
  return WriteAheadLog.of(pageBytes, frames, seen)
}

function isRight(header: Buffer): boolean {
  const magic = header.readUInt32BE(0)
  if (magic !== magicOfLittleEndianSums && magic !== magicOfBigEndianSums) return false
  const sums = summed([0, 0], header.subarray(0, 24), magic === magicOfLittleEndianSums)
  return sums[0] === header.readUInt32BE(24) && sums[1] === header.readUInt32BE(28)
}

/** Where the header does not say it: the distance at which the salts of the first frame come again. */
function pageBytesOf(fd: number, size: number, first: Buffer): number | undefined {
  if (first.readUInt32BE(0) === 0) return undefined
  const next = Buffer.alloc(frameHeaderBytes)
  for (let pageBytes = 512; pageBytes <= 65_536; pageBytes *= 2) {
    const at = headerBytes + frameHeaderBytes + pageBytes
    if (at === size) return pageBytes
    if (at + frameHeaderBytes > size) return undefined
    readSync(fd, next, 0, frameHeaderBytes, at)
    if (next.subarray(8, 16).equals(first.subarray(8, 16))) return pageBytes
  }
  return undefined
}

function summed([first, second]: Sums, bytes: Buffer, isLittle: boolean): Sums {
  let [one, two] = [first, second]
  for (let at = 0; at < bytes.length; at += 8) {
    one = (one + (isLittle ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at)) + two) >>> 0
    two = (two + (isLittle ? bytes.readUInt32LE(at + 4) : bytes.readUInt32BE(at + 4)) + one) >>> 0
  }
  return [one, two]
}
