import { connect } from 'node:net'
import type { Finding } from '../findings.js'

const limitMs = 1_000

/** Whether something listens there. Both are optional, so that nothing is wrong when it does not. */
export async function examinePort(
  subject: string,
  host: string,
  port: number,
  without: string,
): Promise<Finding> {
  const listens = await new Promise<boolean>((resolve) => {
    const socket = connect({ host, port, timeout: limitMs })
    const settle = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', () => settle(true))
    socket.once('timeout', () => settle(false))
    socket.once('error', () => settle(false))
  })
  if (listens) return { subject, state: 'ok', detail: `listens on ${host}:${port}` }
  return { subject, state: 'skipped', detail: `nothing listens on ${host}:${port}; ${without}` }
}
