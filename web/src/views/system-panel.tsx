import type { JSX } from 'preact'
import type { Status } from '../api/types.js'
import { useDashboard } from '../state/context.js'
import { useStore } from '../state/store.js'
import { count } from './format.js'

const tones: Readonly<Record<string, string>> = {
  ready: 'ok',
  up: 'ok',
  member: 'ok',
  starting: 'warn',
  restarting: 'warn',
  connecting: 'warn',
  joining: 'warn',
  'cut off': 'bad',
  failed: 'bad',
  left: 'bad',
  down: 'bad',
  stopped: 'idle',
}

/** What runs: engines with their model, sinks, cache; and this node's place in its cluster. */
export function SystemPanel(): JSX.Element | null {
  const { poller } = useDashboard()
  const status = useStore(poller.status)
  if (status === undefined) return null
  return (
    <section class="panel" aria-labelledby="system-title">
      <header class="panel-head">
        <h2 id="system-title">System</h2>
        <span
          class="muted"
          title="WebSocket connections; an open page has one for results and one for pictures"
        >
          {count(status.stream.clients)} stream {status.stream.clients === 1 ? 'connection' : 'connections'}
        </span>
      </header>
      <ul class="system">
        {status.engines.map((engine) => (
          <EngineRow key={engine.index} engine={engine} />
        ))}
        {status.sinks.map((sink) => (
          <Row
            key={sink.name}
            name={sink.name}
            state={sink.state}
            text={`${count(sink.delivered)} delivered, ${count(sink.queued)} waiting, ${count(sink.dropped)} dropped`}
            reason={sink.reason}
          />
        ))}
        <Row
          name="cache"
          state={status.cache.state}
          text={status.cache.backend}
          reason={status.cache.reason}
        />
        {status.cluster !== null && <NodeRow cluster={status.cluster} />}
      </ul>
    </section>
  )
}

function NodeRow({ cluster }: Readonly<{ cluster: NonNullable<Status['cluster']> }>): JSX.Element {
  const { id, node, state, held, slots, reason } = cluster
  return (
    <Row
      name={`node ${node}`}
      state={state.replace('_', ' ')}
      text={`has ${count(held)} of ${count(slots)} slots of cluster ${id}`}
      reason={reason}
    />
  )
}

function EngineRow({ engine }: Readonly<{ engine: Status['engines'][number] }>): JSX.Element {
  const { detector, restarts } = engine
  const text =
    detector === null
      ? 'no model yet'
      : `${detector.model.name} v${detector.model.version} on ${detector.provider}${detector.deviceId === undefined ? '' : ` (GPU ${detector.deviceId})`}, ${detector.instances}\u00a0×\u00a0batch\u00a0${detector.maxBatchSize}`
  const notes = [engine.reason, ...(detector?.providerNotes ?? [])].filter((note) => note !== '')
  return (
    <Row
      name={`engine ${engine.index}`}
      state={engine.state}
      text={restarts === 0 ? text : `${text} · ${count(restarts)} ${restarts === 1 ? 'restart' : 'restarts'}`}
      reason={notes.join(' · ')}
    />
  )
}

type RowProps = Readonly<{ name: string; state: string; text: string; reason: string }>

function Row({ name, state, text, reason }: RowProps): JSX.Element {
  return (
    <li>
      <span class={`badge ${tones[state] ?? 'idle'}`}>
        <span class="dot" aria-hidden="true" />
        {state}
      </span>
      <div>
        <strong>{name}</strong> <span class="muted">{text}</span>
        {reason !== '' && <p class="system-reason">{reason}</p>}
      </div>
    </li>
  )
}
