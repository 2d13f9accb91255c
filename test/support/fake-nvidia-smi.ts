import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A shell begins in no time, also on a machine that is busy. */
const script = `#!/bin/sh
dir=\${0%/*}
echo "$$ $*" >> "$dir/starts"
if [ -e "$dir/stubborn" ]; then trap '' TERM INT; fi
for arg in "$@"; do
  case $arg in --loop-ms=*) ms=\${arg#--loop-ms=} ;; esac
done
pause=$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))
while :; do
  while IFS= read -r line; do
    case $line in
      'exit '*) exit "\${line#exit }" ;;
      flood) yes flood ;;
    esac
    printf '%s\\n' "$line"
  done < "$dir/says"
  sleep "$pause"
done
`

/**
 * A program `nvidia-smi` in a folder of its own, which the caller removes. At every turn of its loop it says what it is told to say by
 * then; a line `exit N` ends it, and at a line `flood` it writes as fast as it can.
 *
 * Rows are those of `--format=csv,noheader,nounits`: index, uuid, utilization.gpu, memory.total, memory.used, power.draw, power.limit, name.
 */
export class FakeNvidiaSmi {
  constructor(
    readonly dir: string,
    says: string,
  ) {
    this.says(says)
    writeFileSync(join(dir, 'starts'), '')
    const program = join(dir, 'nvidia-smi')
    writeFileSync(program, script)
    chmodSync(program, 0o755)
  }

  /** With it before everything else. */
  get path(): string {
    return `${this.dir}:${process.env['PATH'] ?? ''}`
  }

  /** From the next turn on. */
  says(text: string): void {
    writeFileSync(join(this.dir, 'says'), text === '' ? '' : `${text}\n`)
  }

  /** Whether a run that begins from here on does not end when it is asked to. */
  stubborn(isStubborn: boolean): void {
    if (isStubborn) writeFileSync(join(this.dir, 'stubborn'), '')
    else rmSync(join(this.dir, 'stubborn'), { force: true })
  }

  /** Every run, the first one first. */
  get runs(): readonly Readonly<{ pid: number; args: string }>[] {
    const lines = readFileSync(join(this.dir, 'starts'), 'utf8').split('\n').slice(0, -1)
    return lines.map((line) => ({ pid: Number.parseInt(line, 10), args: line.replace(/^\d+ /, '') }))
  }
}

/** What it says of an H100 at work. */
export const h100 = {
  uuid: 'GPU-5e3a1f0c-7d42-4b7e-9c55-0a1b2c3d4e5f',
  row: '0, GPU-5e3a1f0c-7d42-4b7e-9c55-0a1b2c3d4e5f, 45, 81559, 1207, 318.42, 700.00, NVIDIA H100 80GB HBM3',
} as const
