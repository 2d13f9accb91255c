import type { PipelineConfig } from '../../config/pipeline.js'
import { listenProblem } from '../../api/free-port.js'
import type { Finding } from '../findings.js'

type ServerConfig = PipelineConfig['server']

/** Whether `gantry serve` could listen where its settings say; ports given as 0 are free by nature. */
export async function examinePorts(server: ServerConfig, modelServer: boolean): Promise<Finding[]> {
  const settings = ['httpPort', 'metricsPort', ...(modelServer ? (['grpcPort'] as const) : [])] as const
  const asked = settings.filter((setting) => server[setting] !== 0)
  return Promise.all(asked.map((setting) => examine(server.host, server[setting], setting)))
}

async function examine(host: string, port: number, setting: string): Promise<Finding> {
  const subject = `port ${port}`
  const problem = await listenProblem(host, port)
  switch (problem) {
    case undefined:
      return { subject, state: 'ok', detail: `free (server.${setting})` }
    case 'EADDRINUSE':
      return {
        subject,
        state: 'warning',
        detail: `in use on ${host}, by another program or a Gantry that runs (server.${setting})`,
        fix: `end what listens there, or set another server.${setting}`,
      }
    case 'EACCES':
      return {
        subject,
        state: 'failed',
        detail: `this user may not listen there (server.${setting})`,
        fix: 'use a port from 1024 on',
      }
    default:
      return {
        subject,
        state: 'failed',
        detail: `cannot listen on ${host}: ${problem} (server.${setting})`,
        fix: 'set server.host to an address of this machine',
      }
  }
}
