import type { JSX } from 'preact'
import type { Status } from '../api/types.js'
import { useDashboard } from '../state/context.js'
import { useStore } from '../state/store.js'
import { ofMost, share } from './format.js'

type Gpu = Status['gpus'][number]

const gib = 1024 ** 3

/** Shares of the memory from which it is short. */
const [warnAt, badAt] = [0.9, 0.97]

/** The graphics cards and what runs the cameras; nothing on a machine without a card. */
export function GpuPanel(): JSX.Element | null {
  const { poller } = useDashboard()
  const status = useStore(poller.status)
  if (status === undefined || status.gpus.length === 0) return null
  return (
    <section class="panel" aria-labelledby="gpu-title">
      <header class="panel-head">
        <h2 id="gpu-title">GPU</h2>
        <Runs engines={status.engines} />
      </header>
      <ul class="gpus">
        {status.gpus.map((gpu) => (
          <GpuRow key={gpu.uuid} gpu={gpu} />
        ))}
      </ul>
    </section>
  )
}

/** Which providers run the models of the cameras. */
function Runs({ engines }: Pick<Status, 'engines'>): JSX.Element | null {
  const detectors = engines.flatMap(({ detector }) => detector ?? [])
  if (detectors.length === 0) return null
  const providers = new Set(detectors.map(({ provider }) => provider))
  const failures = detectors.flatMap(({ providerFailures }) => providerFailures)
  const tone = failures.length > 0 ? 'warn' : providers.has('cpu') ? 'idle' : 'ok'
  return (
    <span class={`badge ${tone}`} title={failures.join('\n') || 'What runs the models of the cameras'}>
      <span class="dot" aria-hidden="true" />
      cameras on {[...providers].join(', ')}
    </span>
  )
}

function GpuRow({ gpu }: Readonly<{ gpu: Gpu }>): JSX.Element {
  const { index, uuid, name, utilization, powerWatts, powerLimitWatts, reason } = gpu
  return (
    <li data-gpu={index}>
      <h3 title={uuid}>
        GPU {index} <span class="muted">{name}</span>
      </h3>
      {reason !== '' && <p class="gpu-reason">No figures: {reason}</p>}
      {utilization !== null && (
        <Meter name="Utilisation" part={utilization} tone="info" text={share(utilization)} />
      )}
      <Memory gpu={gpu} />
      {powerWatts !== null && (
        <Meter
          name="Power"
          part={powerLimitWatts === null ? null : powerWatts / powerLimitWatts}
          tone="info"
          text={ofMost(powerWatts, powerLimitWatts, 0, 'W')}
        />
      )}
    </li>
  )
}

function Memory({ gpu }: Readonly<{ gpu: Gpu }>): JSX.Element | null {
  const { memoryUsedBytes: used, memoryTotalBytes: total } = gpu
  if (used === null || total === null || total === 0) return null
  const part = used / total
  const tone = part >= badAt ? 'bad' : part >= warnAt ? 'warn' : 'info'
  return <Meter name="Memory" part={part} tone={tone} text={ofMost(used / gib, total / gib, 1, 'GiB')} />
}

type MeterProps = Readonly<{
  name: string
  /** 0-1, what is more is full; `null` where there is nothing to compare with. */
  part: number | null
  tone: 'info' | 'warn' | 'bad'
  text: string
}>

function Meter({ name, part, tone, text }: MeterProps): JSX.Element {
  return (
    <div class="meter">
      <span class="muted">{name}</span>
      {part !== null && (
        <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
          <rect class={`fill-${tone}`} width={Math.min(1, part) * 100} height="6" />
        </svg>
      )}
      <span class="meter-text">{text}</span>
    </div>
  )
}
