import type { ModelServer } from '../serving/model-server.js'

/**
 * Reads a request. That its model is unknown or does not serve is told before what is wrong with the request, as Triton does.
 *
 * @throws ServingError, and what `read` throws
 */
export async function readForModel<T>(
  server: ModelServer,
  { model, version }: Readonly<{ model: string; version: string }>,
  read: () => T | Promise<T>,
): Promise<T> {
  try {
    return await read()
  } catch (error) {
    await server.ask(model)
    server.metadata(model, version)
    throw error
  }
}
