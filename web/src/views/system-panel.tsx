import type { JSX } from 'preact'
import type { Camera, Status } from '../api/types.js'
import { useDashboard } from '../state/context.js'
import { serviceClock } from '../state/service-clock.js'
import { useStore } from '../state/store.js'
import { count, moment } from './format.js'

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
  gone: 'bad',
  down: 'bad',
  stopped: 'idle',
}

/** What runs: engines with their model, sinks, cache; and the nodes of the cluster. */
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
        {status.cluster !== null && <NodeRows cluster={status.cluster} />}
      </ul>
    </section>
  )
}

/** A node that left longer ago is told by the API alone: that it did may have been meant. */
const goneShownMs = 3_600_000

/** This node's place, and the other nodes with what they have. */
function NodeRows({ cluster }: Readonly<{ cluster: NonNullable<Status['cluster']> }>): JSX.Element {
  const { id, node, state, held, slots, reason, nodes } = cluster
  const cameras = useStore(useDashboard().poller.cameras) ?? []
  const nowMs = serviceClock.now()
  const others = nodes.filter(
    (other) =>
      other.node !== node && (other.leftAt === null || nowMs - Date.parse(other.leftAt) < goneShownMs),
  )
  return (
    <>
      <Row
        name={`node ${node}`}
        state={state.replace('_', ' ')}
        text={`has ${count(held)} of ${count(slots)} slots of cluster ${id}, ${camerasOf(node, cameras)}`}
        reason={reason}
      />
      {others.map((other) => (
        <Row
          key={other.node}
          name={`node ${other.node}`}
          state={other.leftAt === null ? 'member' : 'gone'}
          text={
            other.leftAt === null
              ? camerasOf(other.node, cameras)
              : `left ${moment(Date.parse(other.leftAt), nowMs)}`
          }
          reason=""
        />
      ))}
    </>
  )
}

/** `12 cameras`, `12 cameras, 11 live`. */
function camerasOf(node: string, cameras: readonly Camera[]): string {
  const own = cameras.filter((camera) => camera.node === node)
  const live = own.filter(({ status }) => status.state === 'live').length
  const all = `${count(own.length)} ${own.length === 1 ? 'camera' : 'cameras'}`
  return live === own.length ? all : `${all}, ${count(live)} live`
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
