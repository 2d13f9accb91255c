import {
  StreamConnection,
  webSocket,
  type StreamListener,
  type Wants,
} from '../../../clients/typescript/src/index.js'
import { savedToken } from '../api/token.js'
import { serviceClock } from '../state/service-clock.js'

/**
 * A stream of the service that this page is of, by the package for everybody.
 *
 * @param resumes - whether to ask for what was sent while the line was down.
 */
export function liveStream(listener: StreamListener, wants: Wants, resumes: boolean): StreamConnection {
  return new StreamConnection(listener, {
    // Relative to the page, so that it also works under a path of a reverse proxy.
    url: new URL('.', location.href),
    token: savedToken,
    // The page asks by HTTP all the time, and learns there why it is refused.
    open: webSocket(false),
    whenRefused: 'retry',
    wants,
    resumes,
    clock: serviceClock,
  })
}
