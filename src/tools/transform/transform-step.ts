import type { SizePx } from '../../vision/letterbox.js'
import { ModelTransformError } from './transform-error.js'

/** One transformation of a model, as it is named in a command: `fold`, `nms`, `batch=free`, `size=640x384`, `int8`, `float16`, `simplify`. */
export type TransformStep =
  | Readonly<{ kind: 'fold' | 'nms' | 'int8' | 'float16' | 'simplify' }>
  | Readonly<{ kind: 'batch'; batch: number | 'free' }>
  | Readonly<{ kind: 'size'; size: SizePx | 'free' }>

export const stepForms = [
  'fold',
  'nms',
  'batch=free',
  'batch=N',
  'size=WIDTHxHEIGHT',
  'size=free',
  'int8',
  'float16',
  'simplify',
] as const

/** @throws ModelTransformError for what is none */
export function parseStep(text: string): TransformStep {
  const [word = '', value] = text.split('=')
  if (
    value === undefined &&
    (word === 'fold' || word === 'nms' || word === 'int8' || word === 'float16' || word === 'simplify')
  )
    return { kind: word }
  if (word === 'batch' && value !== undefined && /^(free|[1-9]\d{0,3})$/.test(value))
    return { kind: 'batch', batch: value === 'free' ? 'free' : Number(value) }
  const size = /^(\d{2,5})x(\d{2,5})$/.exec(value ?? '')
  if (word === 'size' && value === 'free') return { kind: 'size', size: 'free' }
  if (word === 'size' && size !== null)
    return { kind: 'size', size: { widthPx: Number(size[1]), heightPx: Number(size[2]) } }
  throw new ModelTransformError(`"${text}" is no step`, `Steps are ${stepForms.join(', ')}.`)
}

/** A step in the words of {@link parseStep}. */
export function stepText(step: TransformStep): string {
  if (step.kind === 'batch') return `batch=${step.batch}`
  if (step.kind !== 'size') return step.kind
  return `size=${step.size === 'free' ? 'free' : `${step.size.widthPx}x${step.size.heightPx}`}`
}

/** Whether Python and its libraries do it. */
export function needsPython({ kind }: TransformStep): boolean {
  return kind === 'int8' || kind === 'float16' || kind === 'simplify'
}
