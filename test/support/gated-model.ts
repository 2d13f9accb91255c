import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Begins a run with the file `began<value>` beside the model, and ends it once the file `open` is there or its time is over. */
const code = `
import { existsSync, writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

export default ({ versionDir, parameters }) => ({
  async execute({ inputs }) {
    const [value] = inputs.value.data
    const endMs = Date.now() + Number(parameters.run_ms)
    writeFileSync(versionDir + '/began' + value, '')
    while (Date.now() < endMs && !existsSync(versionDir + '/open')) await pause(5)
    return { value: { shape: [1, 1], data: Float32Array.of(value) } }
  },
})
`

/** A model of one instance that gives its input back when it is let, one request after another. It needs `models.allowJsBackends`. */
export class GatedModel {
  static readonly name = 'gated'
  readonly #versionDir: string

  /** @param runMs - how long a run takes when nobody opens the gate. */
  constructor(repository: string, runMs = 600_000) {
    this.#versionDir = join(repository, GatedModel.name, '1')
    mkdirSync(this.#versionDir, { recursive: true })
    writeFileSync(join(this.#versionDir, 'model.mjs'), code)
    writeFileSync(
      join(repository, GatedModel.name, 'config.pbtxt'),
      `backend: "js" max_batch_size: 1
input { name: "value" data_type: TYPE_FP32 dims: 1 }
output { name: "value" data_type: TYPE_FP32 dims: 1 }
instance_group { count: 1 kind: KIND_CPU }
parameters { key: "run_ms" value: { string_value: "${runMs}" } }
parameters { key: "gantry.timeout_ms" value: { string_value: "240000" } }`,
    )
  }

  /** Requests whose run has begun. */
  get begun(): number {
    return readdirSync(this.#versionDir).filter((name) => name.startsWith('began')).length
  }

  open(): void {
    if (!existsSync(this.#versionDir)) throw new Error('the model is gone')
    writeFileSync(join(this.#versionDir, 'open'), '')
  }

  /** Body of a request by HTTP. */
  static json(value: number): string {
    return JSON.stringify({ inputs: [{ name: 'value', datatype: 'FP32', shape: [1, 1], data: [value] }] })
  }

  /** The same by gRPC. */
  static message(value: number) {
    return {
      model_name: GatedModel.name,
      id: String(value),
      inputs: [{ name: 'value', datatype: 'FP32', shape: [1, 1], contents: { fp32_contents: [value] } }],
    }
  }
}
