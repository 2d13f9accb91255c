import { WebGLRenderer } from 'three'
import { type PageJob, frameHeaderBytes } from '../render/protocol.js'
import { IdStage } from './ids.js'
import { Stage } from './stage.js'

const canvas = document.createElement('canvas')
const renderer = new WebGLRenderer({ canvas, antialias: false, powerPreference: 'high-performance' })
renderer.shadowMap.enabled = true
renderer.info.autoReset = true

const socket = new WebSocket(`ws://${location.host}/frames`)
socket.binaryType = 'arraybuffer'

/** Frames sent and not yet taken by the other side; two keep both sides busy without filling memory. */
const inFlightLimit = 2
let inFlight = 0
let wake: (() => void) | undefined
let stopped = false

socket.addEventListener('message', (event: MessageEvent<string>) => {
  const message = JSON.parse(event.data) as
    { type: 'job'; job: PageJob } | { type: 'taken' } | { type: 'stop' }
  if (message.type === 'taken') {
    inFlight--
    wake?.()
    return
  }
  if (message.type === 'stop') {
    stopped = true
    return
  }
  work(message.job).catch((error: unknown) => {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    socket.send(JSON.stringify({ type: 'failed', message: text }))
  })
})

async function work(job: PageJob): Promise<void> {
  const stage =
    job.kind === 'ids' ? new IdStage(renderer, job.scenario, job) : new Stage(renderer, job.scenario, job)
  const message = new Uint8Array(frameHeaderBytes + job.widthPx * job.heightPx * 4)
  const header = new DataView(message.buffer)
  stopped = false
  for (const frame of job.frames) {
    if (stopped) break
    stage.draw(frame, message.subarray(frameHeaderBytes))
    header.setUint32(0, frame, true)
    while (inFlight >= inFlightLimit) await new Promise<void>((resolve) => (wake = resolve))
    inFlight++
    socket.send(message)
  }
  stage.dispose()
  socket.send(JSON.stringify({ type: 'done' }))
}
