// Looping cameras /cam0 ... of one clip in a process of their own; tells its port. Arguments: CLIP CAMERAS
import { LoopingRtspServer } from '../../dist/tools/rtsp-server/looping-rtsp-server.js'

const [clip, cameras] = process.argv.slice(2)
const server = new LoopingRtspServer()
for (let camera = 0; camera < Number(cameras); camera += 1) await server.addStream(`/cam${camera}`, clip)
const { port } = await server.start()
console.log(port)
