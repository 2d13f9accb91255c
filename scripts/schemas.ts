// `npm run schemas`: writes schemas/*.json from the schemas the service checks with.
import { mkdir, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { asyncApiDocument } from '../src/messages/asyncapi.js'
import { pipelineJsonSchema } from '../src/config/pipeline-json-schema.js'
import { messageSchemas } from '../src/messages/json-schemas.js'
import { openApiDocument } from '../src/api/openapi.js'

const folder = new URL('../schemas/', import.meta.url)
const documents: Record<string, unknown> = {
  ...messageSchemas(),
  'pipeline.schema.json': pipelineJsonSchema(),
  'asyncapi.json': asyncApiDocument(),
  'openapi.json': openApiDocument(),
}
await mkdir(folder, { recursive: true })
for (const [name, document] of Object.entries(documents))
  await writeFile(new URL(name, folder), `${JSON.stringify(document, null, 2)}\n`)
process.stdout.write(`${Object.keys(documents).length} files in ${fileURLToPath(folder)}\n`)
