import type { JSX } from 'preact'
import { useDashboard } from '../state/context.js'
import { useEachSecond } from '../state/seconds.js'
import { monotonicMs } from '../state/service-clock.js'
import { useStore } from '../state/store.js'
import { useStreamTrouble, type StreamTrouble } from '../state/stream-trouble.js'
import { duration } from './format.js'
import { serviceState } from './header.js'
import { Icon } from './icon.js'

/** Says what is wrong and since when, under the header; absent while all is well. Service and streams fail apart, so each has its line. */
export function Banner(): JSX.Element | null {
  const { poller } = useDashboard()
  const link = useStore(poller.link)
  const status = useStore(poller.status)
  const trouble = useStreamTrouble()
  const state = serviceState(link, status)
  return (
    <>
      {link.state === 'down' && <NoAnswer lastAnswerMs={link.lastAnswerMs} streams={trouble === undefined} />}
      {(state.key === 'not-ready' || state.key === 'degraded') && (
        <Message tone={state.tone}>
          <strong>{state.text}.</strong> {state.reasons.join(' · ')}
        </Message>
      )}
      {trouble !== undefined && link.state !== 'locked' && <NoStream trouble={trouble} />}
    </>
  )
}

type NoAnswerProps = Readonly<{ lastAnswerMs: number | undefined; streams: boolean }>

function NoAnswer({ lastAnswerMs, streams }: NoAnswerProps): JSX.Element {
  const ago = useEachSecond(() => (lastAnswerMs === undefined ? '' : duration(monotonicMs() - lastAnswerMs)))
  return (
    <Message tone="bad">
      The service does not answer.{ago === '' ? '' : ` Last answer ${ago} ago.`} This page keeps trying;{' '}
      {streams
        ? 'states and figures below are old, pictures and detections still come.'
        : 'what you see below is old.'}
    </Message>
  )
}

const missing: Readonly<Record<StreamTrouble['what'], string>> = {
  all: 'pictures and detections',
  pictures: 'pictures',
  results: 'detections',
}

function NoStream({ trouble: { what, stream } }: Readonly<{ trouble: StreamTrouble }>): JSX.Element {
  const { results, pictures } = useDashboard()
  const silentFor = useEachSecond(() =>
    stream.heardMs === undefined ? '' : duration(monotonicMs() - stream.heardMs),
  )
  const left = useEachSecond(() =>
    stream.retryAtMs === undefined ? '' : duration(Math.max(0, stream.retryAtMs - monotonicMs())),
  )
  const since = silentFor === '' ? '' : ` Nothing came for ${silentFor}:`
  return (
    <Message tone="warn">
      The live stream of {missing[what]} {stream.trouble === 'silent' ? 'is silent' : 'broke off'}.
      {since === '' ? ' They' : `${since} they`} are as old as that.{' '}
      {!navigator.onLine && 'This computer is offline. '}
      {stream.state === 'waiting' ? (
        <>
          Next attempt in {left}.{' '}
          <button
            type="button"
            class="link-button"
            onClick={() => {
              results.retryNow()
              pictures.retryNow()
            }}
          >
            Try now
          </button>
        </>
      ) : (
        `This page ${stream.state === 'open' ? 'asks whether it still lives' : 'is opening it anew'}.`
      )}
    </Message>
  )
}

function Message({
  tone,
  children,
}: Readonly<{ tone: string; children: JSX.Element['props']['children'] }>): JSX.Element {
  return (
    <div class={`banner ${tone}`} role="alert">
      <Icon name="warning" />
      <p>{children}</p>
    </div>
  )
}
