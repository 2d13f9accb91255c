import type { JSX } from 'preact'
import { labelColor } from '../../../src/vision/label-colors.js'
import { labelName } from '../../../src/vision/label-name.js'
import { useDashboard } from '../state/context.js'
import { useStore } from '../state/store.js'
import { Dialog } from './dialog.js'
import { Steps } from './first-steps.js'
import { Swatch } from './label-chips.js'

const keys: readonly (readonly [string, string])[] = [
  ['← ↑ → ↓', 'move between cameras'],
  ['Enter', 'enlarge the camera'],
  ['← →', 'camera before or after, while one is enlarged'],
  ['Delete', 'remove the camera'],
  ['a', 'add a camera'],
  ['b', 'boxes on or off'],
  ['n', 'names of classes on or off'],
  ['f', 'the enlarged camera in its own resolution, or live'],
  ['c', 'the cameras'],
  ['m', 'the models'],
  ['/', 'filter the detections, or the models'],
  ['t', 'dark or light colours'],
  ['?', 'this help'],
  ['Esc', 'close'],
]

const labels: readonly (readonly [string, string])[] = [
  ['helmet', 'helmet worn'],
  ['head', 'bare head: helmet missing'],
  ['vest', 'vest worn'],
  ['no_vest', 'vest missing'],
  ['person', 'people'],
  ['machinery', 'machines and vehicles'],
]

/** The first steps, keys, colours and where the API is described. */
export function Help({ onClose }: Readonly<{ onClose: () => void }>): JSX.Element {
  const { poller } = useDashboard()
  const status = useStore(poller.status)
  const cameras = useStore(poller.cameras) ?? []
  return (
    <Dialog title="Help" onClose={onClose} class="wide">
      <div class="help">
        {status !== undefined && status.engines.length > 0 && <Steps status={status} cameras={cameras} />}
        <section>
          <h3>Keys</h3>
          <dl class="keys">
            {keys.map(([key, meaning]) => (
              <div key={key + meaning}>
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{meaning}</dd>
              </div>
            ))}
          </dl>
        </section>
        <section>
          <h3>Colours of the boxes</h3>
          <ul class="legend">
            {labels.map(([label, meaning]) => (
              <li key={label} data-color={labelColor(label)}>
                <Swatch label={label} /> <strong>{labelName(label)}</strong>{' '}
                <span class="muted">{meaning}</span>
              </li>
            ))}
          </ul>
          <p class="muted">On small pictures only missing protection has a caption.</p>
          <h3>For programs</h3>
          <p>
            The API is described in <a href="openapi.json">openapi.json</a>, the live messages in{' '}
            <a href="asyncapi.json">asyncapi.json</a>, the figures for Prometheus are at{' '}
            <a href="metrics">metrics</a>.
          </p>
        </section>
      </div>
    </Dialog>
  )
}
