import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Of `Elf64_Phdr` and `Elf64_Dyn`. */
const segment = { load: 1, dynamic: 2 } as const
const entry = { needed: 1, strings: 5, stringBytes: 10, rpath: 15, runpath: 29 } as const
/** Of a file that is no library, or a damaged one, no more is read. */
const mostBytes = 16 * 1024 ** 2

/**
 * Libraries that a library needs by itself and that are in none of the folders where the loader of the system looks. Files are read,
 * nothing is loaded. The loader itself names only the first that it lacks.
 *
 * @returns none where the file cannot be read as a 64-bit library of Linux.
 */
export function missingLibraries(path: string): readonly string[] {
  const { needed, folders } = readDynamic(path)
  if (needed.length === 0) return []
  const cached = readBytes('/etc/ld.so.cache')
  const places = [...folders, ...listOf(process.env.LD_LIBRARY_PATH), ...systemFolders()]
  return needed.filter(
    (name) => !cached.includes(`\0${name}\0`) && !places.some((folder) => existsSync(join(folder, name))),
  )
}

type Dynamic = Readonly<{ needed: readonly string[]; folders: readonly string[] }>

function readDynamic(path: string): Dynamic {
  try {
    const fd = openSync(path, 'r')
    try {
      return dynamicOf(fd, dirname(path))
    } finally {
      closeSync(fd)
    }
  } catch {
    return { needed: [], folders: [] }
  }
}

/** @throws RangeError for a file that ends too early */
function dynamicOf(fd: number, folder: string): Dynamic {
  const header = bytesAt(fd, 0, 64)
  const isElf64 = header.readUInt32BE(0) === 0x7f454c46 && header[4] === 2 && header[5] === 1
  if (!isElf64) return { needed: [], folders: [] }
  const size = header.readUInt16LE(54)
  const table = bytesAt(fd, Number(header.readBigUInt64LE(32)), size * header.readUInt16LE(56))
  const segments = Array.from({ length: table.length / size }, (_, index) => {
    const at = index * size
    const number = (offset: number) => Number(table.readBigUInt64LE(at + offset))
    return { type: table.readUInt32LE(at), offset: number(8), address: number(16), bytes: number(32) }
  })
  const dynamic = segments.find(({ type }) => type === segment.dynamic)
  if (dynamic === undefined) return { needed: [], folders: [] }
  const values = bytesAt(fd, dynamic.offset, dynamic.bytes)
  const entries = Array.from({ length: Math.floor(values.length / 16) }, (_, index) => ({
    tag: Number(values.readBigInt64LE(index * 16)),
    value: Number(values.readBigUInt64LE(index * 16 + 8)),
  }))
  const valueOf = (wanted: number) => entries.find(({ tag }) => tag === wanted)?.value ?? 0
  const address = valueOf(entry.strings)
  const home = segments.find(
    ({ type, address: from, bytes }) => type === segment.load && address >= from && address < from + bytes,
  )
  if (home === undefined) return { needed: [], folders: [] }
  const strings = bytesAt(fd, home.offset + address - home.address, valueOf(entry.stringBytes))
  const textsOf = (...tags: readonly number[]) =>
    entries
      .filter(({ tag }) => tags.includes(tag))
      .map(({ value }) => strings.toString('utf8', value, strings.indexOf(0, value)))
  const folders = textsOf(entry.runpath, entry.rpath).flatMap(listOf)
  return {
    needed: textsOf(entry.needed),
    folders: folders.map((each) => each.replace(/\$\{?ORIGIN\}?/, folder)),
  }
}

function bytesAt(fd: number, offset: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(Math.min(bytes, mostBytes))
  return buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, offset))
}

function readBytes(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch {
    return Buffer.alloc(0)
  }
}

function listOf(paths = ''): readonly string[] {
  return paths.split(/[:;]/).filter((path) => path !== '')
}

function systemFolders(): readonly string[] {
  const triplet = process.arch === 'arm64' ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu'
  return ['/lib', '/lib64', `/lib/${triplet}`].flatMap((folder) => [folder, `/usr${folder}`])
}
