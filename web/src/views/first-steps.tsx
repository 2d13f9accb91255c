import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { savedToken } from '../api/token.js'
import type { Camera, Status } from '../api/types.js'
import { addCameraCommand, dataCommands, type DataCommand } from '../commands/data-commands.js'
import { useDashboard } from '../state/context.js'
import { Store, useStore } from '../state/store.js'
import { Command } from './command.js'
import { Icon } from './icon.js'

const key = 'gantry.first-steps'
const dismissed = new Store(localStorage.getItem(key) === 'seen')

/** URL of the service as this page has it, with `/` at its end: that of a proxy where there is one. */
export function serviceBase(): string {
  return new URL('.', location.href).href
}

/** What a person sees who is here for the first time: on the demo, and while there are no cameras. Help has it for ever. */
export function FirstSteps({ onAdd }: Readonly<{ onAdd: () => void }>): JSX.Element | null {
  const { poller } = useDashboard()
  const status = useStore(poller.status)
  const cameras = useStore(poller.cameras)
  const seen = useStore(dismissed)
  if (seen || status === undefined || cameras === undefined || status.engines.length === 0) return null
  if (status.name !== 'demo' && cameras.length > 0) return null
  return (
    <section class="panel first-steps" aria-labelledby="first-steps-title">
      <header class="panel-head">
        <h2 id="first-steps-title">Your first ten minutes</h2>
        <button
          type="button"
          class="icon-button"
          aria-label="Dismiss the first steps"
          title="Dismiss; Help (?) keeps it"
          onClick={() => {
            localStorage.setItem(key, 'seen')
            dismissed.set(true)
          }}
        >
          <Icon name="close" />
        </button>
      </header>
      <Steps status={status} cameras={cameras} onAdd={onAdd} />
    </section>
  )
}

type StepsProps = Readonly<{ status: Status; cameras: readonly Camera[]; onAdd?: () => void }>

/** What one is looking at, how one's own camera gets here, how the data gets out. */
export function Steps({ status, cameras, onAdd }: StepsProps): JSX.Element {
  const source = { base: serviceBase(), wantsToken: savedToken() !== undefined, kafka: status.kafka }
  return (
    <ol class="first-steps-list">
      <li>
        <h3>What am I looking at?</h3>
        <p>{looksAt(status, cameras)}</p>
        <p class="muted">
          A box is something that was found in this very picture. <span class="sample ok">Green</span> and
          lime are protection that is worn, <span class="sample bad">red</span> and orange protection that is
          missing; blue are people, yellow are machines and vehicles.
        </p>
      </li>
      <li>
        <h3>How do I add my camera?</h3>
        <p>
          {onAdd === undefined ? (
            <>
              With <strong>Add camera</strong>
            </>
          ) : (
            <>
              With{' '}
              <button type="button" class="link-button" onClick={onAdd}>
                Add camera
              </button>
            </>
          )}{' '}
          and its RTSP address. It is live within seconds, and nothing is started anew. Or by a program:
        </p>
        <Command
          label="Command that adds a camera"
          text={addCameraCommand(source, 'rtsp://192.0.2.10:554/stream1')}
        />
      </li>
      <li>
        <h3>How do I get the data out?</h3>
        <DataOut commands={dataCommands(source)} />
        {source.wantsToken && (
          <p class="muted">
            Before that, in the same shell: <code>export GANTRY_TOKEN=…</code> with the token of this service.
          </p>
        )}
      </li>
    </ol>
  )
}

function looksAt({ name, engines }: Status, all: readonly Camera[]): string {
  // Those that were added to the demo play no clips of it.
  const cameras = name === 'demo' ? all.filter(({ origin }) => origin === 'file').length : all.length
  const model = engines.find(({ detector }) => detector !== null)?.detector?.model.name
  const by = model === undefined ? 'A model' : `The model ${model}`
  if (name === 'demo')
    return `Demo footage: recorded clips that ${cameras === 1 ? 'one camera plays' : `${cameras} cameras play`} over and over by RTSP, as cameras on your network would. ${by} looks for helmets, vests, people and machines in each, here on this machine.`
  if (cameras === 0) return `A service without cameras yet. ${by} looks at each one that you add.`
  return `${cameras === 1 ? 'One camera' : `${cameras} cameras`}. ${by} looks at the pictures of each, as often a second as its settings say.`
}

/** One way at a time. */
function DataOut({ commands }: Readonly<{ commands: readonly DataCommand[] }>): JSX.Element {
  const [id, setId] = useState<DataCommand['id']>('curl')
  const shown = commands.find((command) => command.id === id) ?? commands[0]
  return (
    <div class="data-out">
      <div class="segments" role="group" aria-label="Ways to get the data">
        {commands.map((command) => (
          <button
            key={command.id}
            type="button"
            aria-pressed={command.id === shown?.id}
            onClick={() => setId(command.id)}
          >
            {command.title}
          </button>
        ))}
      </div>
      {shown !== undefined && (
        <>
          <Command label={`Command for ${shown.title}`} text={shown.text} />
          <p class="muted">{shown.note}</p>
        </>
      )}
    </div>
  )
}
