// Looping cameras /cam0 ... in a process of their own, which both sides watch. A line of LOG is one picture sent: camera, its number, ms.
// Arguments: LOG CAMERAS CLIP...
import { appendFileSync } from 'node:fs'
import { LoopingRtspServer } from '../../../dist/tools/rtsp-server/looping-rtsp-server.js'

const [log, cameras, ...clips] = process.argv.slice(2)
let sent = ''
setInterval(() => {
  if (sent === '') return
  appendFileSync(log, sent)
  sent = ''
}, 200)
const server = new LoopingRtspServer()
for (let camera = 0; camera < Number(cameras); camera += 1) {
  const stream = await server.addStream(`/cam${camera}`, clips[camera % clips.length], {
    tamper: (unit, number) => {
      sent += `${camera} ${number % stream.clip.units.length} ${Date.now()}\n`
      return unit.nals
    },
  })
}
const { port } = await server.start()
console.log(port)
