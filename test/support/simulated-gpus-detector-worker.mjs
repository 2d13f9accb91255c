// The worker of a detector on GPUs that are not there.
import './simulated-gpus-worker.mjs'

await import('../../dist/detector/detector-worker.js')
