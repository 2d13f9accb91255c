import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { addModel } from '../../support/onnx-models.js'
import { gpuModels } from './plan.js'

const shipped = join(import.meta.dirname, '../../../models')
const files = { fp32: 'ppe_detect', fp16: 'ppe_detect_fp16' } as const
const sizes = {
  416: { widthPx: 416, heightPx: 416 },
  800: { widthPx: 800, heightPx: 448 },
} as const

/** Largest batch that is measured. */
const largest = 32
const strides = [8, 16, 32]

/** The weights of the shipped detector in both precisions, each at the size of its export and at the one for 16:9 cameras. */
export function makeGpuRepository(dir: string): void {
  for (const name of gpuModels) {
    const [type, width] = name.split('_') as [keyof typeof files, `${keyof typeof sizes}`]
    const { widthPx, heightPx } = sizes[width]
    const points = strides.reduce((sum, stride) => sum + (widthPx / stride) * (heightPx / stride), 0)
    addModel(dir, name, {
      onnx: readFileSync(join(shipped, files[type], '1/model.onnx')),
      labels: readFileSync(join(shipped, files[type], 'labels.txt'), 'utf8'),
      config: `name: "${name}"
platform: "onnxruntime_onnx"
max_batch_size: ${largest}
input [ { name: "images" data_type: TYPE_UINT8 format: FORMAT_NHWC dims: [ ${heightPx}, ${widthPx}, 3 ] } ]
output [ { name: "output0" data_type: TYPE_FP32 dims: [ 11, ${points} ] label_filename: "labels.txt" } ]
dynamic_batching { }
parameters { key: "gantry.exclusive_labels" value { string_value: "helmet, head; vest, no_vest" } }
`,
    })
  }
}
