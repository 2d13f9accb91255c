import { accessSync, chmodSync, constants, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { swiftShader, vulkanPresent } from './vulkan.js'

/**
 * - `card`: decoders on a card work
 * - `no-scale`: this ffmpeg has no filter for scaling there
 * - `scale-fails`: the card does not scale
 * - `ten-bits`: pictures that come back have ten bits a sample
 * - `no-nvdec`: the card does not decode the stream: the real ffmpeg gets pictures of the processor where those of a card are to be
 * - `full`: the card has no memory
 * - `mute`: ends without a word that anybody knows
 */
export type StandInMode = 'card' | 'no-scale' | 'scale-fails' | 'ten-bits' | 'no-nvdec' | 'full' | 'mute'

/** Pictures that the real ffmpeg keeps on a device of Vulkan, in software, where that is there; else they only have another name. */
const onDevice = vulkanPresent
const lay = onDevice ? 's/^/format=nv12,hwupload,/' : ''
const fetch = onDevice ? 'hwdownload,format=nv12,' : ''
const scaled =
  's/scale_cuda=\\(w=[^:]*:h=[^:]*\\):interp_algo=bilinear:format=yuv444p,hwdownload,format=yuv444p/' +
  `${fetch}scale=\\1:flags=area,format=yuv444p/`
const whole = onDevice ? '' : 's/hwdownload,format=nv12,//'

const script = (real: string) => `#!/bin/sh
dir=\${0%/*}
mode=$(cat "$dir/mode")
case " $* " in
  *' -filters '*)
    if [ "$mode" = no-scale ]; then ${real} "$@" | grep -v scale_cuda; exit; fi
    exec ${real} "$@" ;;
  *' -hwaccel cuda '*) ;;
  *) exec ${real} "$@" ;;
esac
printf '%s\\n' "$*" >> "$dir/starts"
# What the real one says of the stream.
opened() {
  echo "[info] Input #0, rtsp, from 'rtsp://camera/s':" >&2
  echo "[info]   Stream #0:0: Video: h264 (High), yuv420p, 320x180, 25 fps" >&2
}
fails() { opened; printf '%s\\n' "$@" >&2; exit 1; }
case $mode in
  scale-fails)
    case "$*" in *scale_cuda*) fails '[Parsed_scale_cuda_2 @ 0x5600] [error] cu->cuModuleLoadDataEx(cu_module, data, 0, 0, 0) failed -> CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the provided PTX was compiled with an unsupported toolchain.' '[error] Error reinitializing filters!' ;; esac ;;
  ten-bits)
    case "$*" in
      *scale_cuda*) fails '[Parsed_scale_cuda_2 @ 0x5600] [error] Unsupported input format: p010le' ;;
      *format=nv12*) fails '[hwdownload @ 0x5600] [error] Invalid output format nv12 for hwframe download.' ;;
    esac ;;
  full) fails '[AVHWDeviceContext @ 0x5600] [error] cu->cuCtxCreate(&hwctx->cuda_ctx, desired_flags, hwctx->internal->cuda_device) failed -> CUDA_ERROR_OUT_OF_MEMORY: out of memory' '[error] Device creation failed: -542398533.' ;;
  mute) opened; exit 1 ;;
esac
skip=
for arg do
  shift
  if [ -n "$skip" ]; then skip=; continue; fi
  case $arg in
    -hwaccel|-hwaccel_device|-hwaccel_output_format) skip=1; continue ;;
    select=*)
      if [ "$mode" != no-nvdec ]; then
        arg=$(printf '%s' "$arg" | sed 's/format=p010le/format=nv12/;${lay};${scaled};${whole}')
      fi ;;
  esac
  set -- "$@" "$arg"
done
${onDevice ? `export VK_ICD_FILENAMES=${swiftShader}\n[ "$mode" = no-nvdec ] || set -- -init_hw_device vulkan=v:0 -filter_hw_device v "$@"` : ''}
exec ${real} "$@"
`

/**
 * A program `ffmpeg` in a folder of its own, which the caller removes: what it is to do on a card it does as one would, or fails as one
 * does; all else is the real one's.
 */
export class StandInFfmpeg {
  /** @param real - the ffmpeg that does the work; that of the machine where it is absent. */
  constructor(
    readonly dir: string,
    mode: StandInMode,
    real = realFfmpeg(),
  ) {
    this.mode = mode
    writeFileSync(join(dir, 'starts'), '')
    const program = join(dir, 'ffmpeg')
    writeFileSync(program, script(real))
    chmodSync(program, 0o755)
  }

  /** From the next start on. */
  set mode(mode: StandInMode) {
    writeFileSync(join(this.dir, 'mode'), mode)
  }

  /** With it before everything else. */
  get path(): string {
    return `${this.dir}:${process.env['PATH'] ?? ''}`
  }

  /** Arguments of those that were started for a card, the first one first. */
  get starts(): readonly string[] {
    return readFileSync(join(this.dir, 'starts'), 'utf8').split('\n').slice(0, -1)
  }
}

/** The first on the PATH. @throws Error where there is none */
export function realFfmpeg(): string {
  for (const dir of (process.env['PATH'] ?? '').split(delimiter)) {
    try {
      const file = join(dir, 'ffmpeg')
      accessSync(file, constants.X_OK)
      return file
    } catch {
      continue
    }
  }
  throw new Error('there is no ffmpeg')
}
