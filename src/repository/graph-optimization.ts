import type { ModelConfig } from './model-config.js'

export type GraphOptimization = 'disabled' | 'basic' | 'extended' | 'all'

/** Levels of Triton's ONNX backend: everything unless told otherwise. */
export function graphOptimization({ optimization }: ModelConfig): GraphOptimization {
  switch (optimization?.graph?.level ?? 0) {
    case -1:
      return 'basic'
    case 1:
      return 'extended'
    case 2:
      return 'disabled'
    default:
      return 'all'
  }
}
