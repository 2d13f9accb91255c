// The RTSP server as a process of its own, which a test can freeze or kill. Arguments: port, path, clip.
import { LoopingRtspServer } from '../../dist/tools/rtsp-server/looping-rtsp-server.js'

const [port, path, clip] = process.argv.slice(2)
const server = new LoopingRtspServer()
await server.addStream(path, clip)
await server.start(Number(port))
console.log('serving')
