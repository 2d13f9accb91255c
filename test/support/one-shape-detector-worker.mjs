// The worker of a detector on the provider that charges for a change of shape.
import './one-shape-provider.mjs'
import '../../dist/detector/detector-worker.js'
