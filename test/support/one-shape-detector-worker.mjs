// The worker of a detector on the provider that charges for a change of shape.
import './one-shape-provider.mjs'
import '../../dist/ensemble/detector-worker.js'
