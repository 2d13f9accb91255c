import { z } from 'zod'
import { pipelineSchema } from './pipeline.js'

/** JSON Schema of the pipeline file, for editors. Published as `schemas/pipeline.schema.json`. */
export function pipelineJsonSchema(): Readonly<Record<string, unknown>> {
  return { title: 'Gantry pipeline file', ...z.toJSONSchema(pipelineSchema, { io: 'input' }) }
}
