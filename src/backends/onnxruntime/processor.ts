import { readFileSync } from 'node:fs'

/** A processor, as far as it matters for how models are computed. */
export type Processor = Readonly<{
  /** Of `process.arch`. */
  architecture: string
  /** Instruction sets by their names in `/proc/cpuinfo`; empty where they are not known. */
  flags: ReadonlySet<string>
}>

/**
 * Whether ONNX Runtime multiplies uint8 activations by int8 weights with `vpmaddubsw`, which adds two products in 16 bits and
 * saturates: on x64 with AVX2 and without VNNI. Older processors, and those that are not x64, add in 32 bits.
 */
export function addsInt8In16Bits({ architecture, flags }: Processor): boolean {
  return architecture === 'x64' && flags.has('avx2') && !flags.has('avx512_vnni') && !flags.has('avx_vnni')
}

export function thisProcessor(): Processor {
  return { architecture: process.arch, flags: flagsIn(cpuInfo()) }
}

/** Flags of the first processor in the text of `/proc/cpuinfo`. */
export function flagsIn(text: string): ReadonlySet<string> {
  const line = /^flags\s*:(.*)$/m.exec(text)?.[1] ?? ''
  return new Set(line.split(' ').filter((flag) => flag !== ''))
}

function cpuInfo(): string {
  try {
    return readFileSync('/proc/cpuinfo', 'utf8')
  } catch {
    return ''
  }
}
