import { promisify } from 'node:util'
import { zstdCompress, zstdDecompress } from 'node:zlib'
import kafkajs, { CompressionTypes } from 'kafkajs'
import type { KafkaConfig } from '../../config/outputs.js'
import { GantryError } from '../../errors.js'

type Codec = Readonly<{
  compress(encoder: { buffer: Buffer }): Promise<Buffer>
  decompress(buffer: Buffer): Promise<Buffer>
}>

/** A codec has no build for this machine. */
class CodecMissingError extends GantryError {
  readonly code = 'GANTRY_ENVIRONMENT'
  readonly hint =
    'Set sinks.kafka.compression to gzip or zstd, or install Gantry anew with its optional packages.'
  constructor(compression: string, cause: unknown) {
    super(`sinks.kafka.compression ${compression} cannot be used on this machine`, { cause })
    this.name = 'CodecMissingError'
  }
}

const types: Readonly<Record<KafkaConfig['compression'], CompressionTypes>> = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

/** Those that the client library lacks; each is loaded by who uses it. */
const makers: Partial<Record<KafkaConfig['compression'], () => Promise<Codec>>> = {
  zstd: () =>
    Promise.resolve({
      compress: ({ buffer }) => promisify(zstdCompress)(buffer),
      decompress: (buffer) => promisify(zstdDecompress)(buffer),
    }),
  // Kafka takes the plain form of Snappy beside that of its own Java library, and the frames of LZ4 alone.
  snappy: async () => {
    const { compress, uncompress } = await import('snappy')
    return {
      compress: ({ buffer }) => compress(buffer),
      decompress: async (buffer) => (await uncompress(buffer)) as Buffer,
    }
  },
  lz4: async () => {
    const { compressFrame, decompressFrame } = await import('lz4-napi')
    return {
      compress: ({ buffer }) => compressFrame(buffer),
      decompress: (buffer) => decompressFrame(buffer),
    }
  },
}

/**
 * Makes a codec known to the client library.
 *
 * @returns what the library calls it
 * @throws CodecMissingError `GANTRY_ENVIRONMENT`
 */
export async function useCodec(compression: KafkaConfig['compression']): Promise<CompressionTypes> {
  const type = types[compression]
  const make = makers[compression]
  if (make === undefined) return type
  try {
    const codec = await make()
    ;(kafkajs.CompressionCodecs as Record<number, () => Codec>)[type] = () => codec
    return type
  } catch (error) {
    throw new CodecMissingError(compression, error)
  }
}
