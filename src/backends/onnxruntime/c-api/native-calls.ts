import { createRequire } from 'node:module'
import type * as Koffi from 'koffi'

/** The only file that knows koffi, which calls C functions. It is optional: who asks for nothing that needs it does without. */

/** What a C function takes: addresses are numbers, and an array or view is the address of its memory for as long as the call runs. */
export type Argument = number | bigint | string | ArrayBufferView | readonly string[]
export type NativeFunction = (...args: readonly Argument[]) => unknown

/**
 * Types of C: an address that native code gave, memory of ours that is read or written, text that ends with NUL, and a list of such.
 */
export const cTypes = {
  address: 'uint64_t',
  memory: 'void *',
  text: 'const char *',
  texts: 'const char **',
  size: 'uint64_t',
  int: 'int',
  nothing: 'void',
} as const
export type CType = keyof typeof cTypes
export type Signature = Readonly<{ gives: CType; takes: readonly CType[] }>

/** A library of native code that is loaded for as long as the thread runs. */
export interface NativeLibrary {
  /** @throws Error for a name that it has not */
  named(name: string, signature: Signature): NativeFunction
}

/** Calls of native code; undefined where koffi is not installed, or has nothing for this machine. */
export function nativeCalls(): NativeCalls | undefined {
  try {
    return new NativeCalls(createRequire(import.meta.url)('koffi') as typeof Koffi)
  } catch {
    return undefined
  }
}

const stackBytes = 8 * 2 ** 20

export class NativeCalls {
  readonly #koffi: typeof Koffi

  constructor(koffi: typeof Koffi) {
    this.#koffi = koffi
    // Calls run on a stack of koffi's own: one as large as a program's, since a model is taken in by recursion.
    if (koffi.config().sync_stack_size !== stackBytes)
      koffi.config({ ...koffi.config(), sync_stack_size: stackBytes })
  }

  /** @throws Error for a file that is no library */
  load(path: string): NativeLibrary {
    const library = this.#koffi.load(path)
    return {
      named: (name, { gives, takes }) => library.func(name, cTypes[gives], typesOf(takes)),
    }
  }

  functionAt(address: number, { gives, takes }: Signature): NativeFunction {
    const prototype = this.#koffi.proto(cTypes[gives], typesOf(takes))
    return this.#koffi.decode(address, prototype) as NativeFunction
  }

  /** Addresses that lie one behind the other in native memory. */
  addressesAt(address: number, count: number): readonly number[] {
    return Array.from(
      this.#koffi.decode(address, cTypes.address, count) as ArrayLike<number | bigint>,
      Number,
    )
  }

  /** Texts whose addresses are in `cells`. */
  textsOf(cells: BigUint64Array): readonly string[] {
    return this.#koffi.decode(cells, this.#koffi.array(cTypes.text, cells.length)) as readonly string[]
  }

  /** Native memory as a buffer, which must not be read once that memory is given back. Once for each address. */
  viewOf(address: number, bytes: number): ArrayBuffer {
    return this.#koffi.view(address, bytes)
  }
}

function typesOf(takes: readonly CType[]): string[] {
  return takes.map((type) => cTypes[type])
}
