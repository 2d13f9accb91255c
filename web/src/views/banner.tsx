import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { useDashboard } from '../state/context.js'
import { useStore } from '../state/store.js'
import { duration } from './format.js'
import { serviceState } from './header.js'
import { Icon } from './icon.js'

/** Says what is wrong and since when, under the header; absent while all is well. */
export function Banner(): JSX.Element | null {
  const { poller, results } = useDashboard()
  const link = useStore(poller.link)
  const status = useStore(poller.status)
  const stream = useStore(results.stream)
  const state = serviceState(link, status)
  const nowMs = useClock(link.state === 'down' || stream.state === 'waiting')
  if (link.state === 'down') {
    const silent =
      link.lastAnswerMs === undefined ? '' : ` Last answer ${duration(nowMs - link.lastAnswerMs)} ago.`
    return (
      <Message tone="bad">
        The service does not answer.{silent} This page keeps trying; what you see below is old.
      </Message>
    )
  }
  if (state.key === 'not-ready' || state.key === 'degraded') {
    return (
      <Message tone={state.tone}>
        <strong>{state.text}.</strong> {state.reasons.join(' · ')}
      </Message>
    )
  }
  if (stream.state === 'waiting' && stream.retryAtMs !== undefined && link.state === 'up') {
    const left = duration(stream.retryAtMs - nowMs)
    return (
      <Message tone="warn">
        The live stream broke off. Next attempt in {left}.{' '}
        <button type="button" class="link-button" onClick={() => results.retryNow()}>
          Try now
        </button>
      </Message>
    )
  }
  return null
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

/** Wall time that moves once a second while it is shown. */
function useClock(ticking: boolean): number {
  const [nowMs, setNowMs] = useState(Date.now())
  useEffect(() => {
    if (!ticking) return
    setNowMs(Date.now())
    const timer = setInterval(() => setNowMs(Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [ticking])
  return nowMs
}
