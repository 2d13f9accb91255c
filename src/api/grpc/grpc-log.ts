import { setLogger } from '@grpc/grpc-js'
import type { Log } from '../../lifecycle/log.js'

/**
 * Puts into the log what grpc-js would print on stderr, for the whole process. At level debug: what matters of it also comes as the
 * error of a call or of a port.
 */
export function takeGrpcLog(log: Log): void {
  const say = (...words: readonly unknown[]) => log.debug({ by: 'grpc-js' }, words.map(String).join(' '))
  setLogger({ error: say, info: say, debug: say })
}
