import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { CameraSeries, type LabelledMetric } from './camera-series.js'

/** Seconds; from a fast stage of a small model to a stalled camera. */
const stageBuckets = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10,
]

/** Every metric of the service. They live in the control process, so that they outlast an engine. */
export type ServiceMetrics = ReturnType<typeof createServiceMetrics>

/** Base units, `_total` for counters; labels are camera ids, model names and small enumerations, nothing unbounded. */
export function createServiceMetrics(registry = new Registry()) {
  const registers = [registry]
  const ofCameras: LabelledMetric[] = []
  const listed = <M extends LabelledMetric>(metric: M, labelNames: readonly string[]): M => {
    if (labelNames.includes('camera')) ofCameras.push(metric)
    return metric
  }
  const counter = <T extends string>(name: string, help: string, labelNames: readonly T[]) =>
    listed(new Counter({ name, help, labelNames, registers }), labelNames)
  const gauge = <T extends string>(name: string, help: string, labelNames: readonly T[]) =>
    listed(new Gauge({ name, help, labelNames, registers }), labelNames)
  const stage = <T extends string>(name: string, help: string, labelNames: readonly T[]) =>
    listed(new Histogram({ name, help, labelNames, buckets: stageBuckets, registers }), labelNames)

  return {
    registry,
    cameraSeries: new CameraSeries(ofCameras),
    framesReceived: counter('gantry_frames_received_total', 'Frames a camera delivered.', ['camera']),
    framesEnded: counter('gantry_frames_total', 'Frames by how they ended; cause is set for shed frames.', [
      'camera',
      'state',
      'cause',
    ]),
    framesInFlight: gauge('gantry_frames_in_flight', 'Frames received and not yet ended.', ['camera']),
    sourceWarnings: counter('gantry_source_warnings_total', 'Troubles that did not end a source.', [
      'camera',
      'kind',
    ]),
    decoderStarts: counter('gantry_decoder_starts_total', 'Decoder starts.', ['camera']),
    decoderCpu: counter('gantry_decoder_cpu_seconds_total', 'CPU time of the decoder.', ['camera']),
    cameraState: gauge('gantry_camera_state', '1 for the state the camera is in.', ['camera', 'state']),
    cameraDecode: gauge(
      'gantry_camera_decode',
      '1 for what is decoded of the stream of the camera: full, fast or keyframes.',
      ['camera', 'mode'],
    ),
    cameraDecoder: gauge(
      'gantry_camera_decoder',
      '1 for where the stream of the camera is decoded: software, cuda-scaled, cuda, vaapi or auto.',
      ['camera', 'by'],
    ),
    gpuDecoders: gauge('gantry_decoders_on_gpu', 'Decoders of cameras on a GPU, by its number.', ['device']),
    gpuDecoderBytes: gauge(
      'gantry_decoder_gpu_memory_bytes',
      'Memory of a GPU that decoders of cameras take, by what one was measured to take.',
      ['device'],
    ),
    gpuDecoderLimit: gauge(
      'gantry_decoder_gpu_memory_limit_bytes',
      'Memory of a GPU that decoders of cameras may take.',
      ['device'],
    ),
    cameraFrozen: gauge('gantry_camera_frozen', '1 while the camera sends the very same picture.', [
      'camera',
    ]),
    coverageSeconds: counter(
      'gantry_coverage_seconds_total',
      'Time of the camera, watched or blind; cause is set for blind time.',
      ['camera', 'state', 'cause'],
    ),
    headroom: gauge(
      'gantry_headroom_cameras',
      'Further cameras like those that are there for which there is room; absent while that is not known.',
      [],
    ),
    detections: counter('gantry_detections_total', 'Objects found.', ['camera', 'label']),
    decodeGap: stage('gantry_decode_gap_seconds', 'Time between two frames of a camera.', ['camera']),
    queue: stage('gantry_queue_seconds', 'Wait for an instance.', ['camera', 'model']),
    infer: stage('gantry_infer_seconds', 'Run of the model that the frame was in.', ['camera', 'model']),
    postprocess: stage('gantry_postprocess_seconds', 'Head decoding and NMS.', ['camera', 'model']),
    captureToPublish: stage('gantry_capture_to_publish_seconds', 'Last byte from the decoder to the sinks.', [
      'camera',
      'model',
    ]),
    publish: stage('gantry_publish_seconds', 'Handing a result to a sink until it is delivered.', [
      'sink',
      'camera',
    ]),
    stepFailures: counter(
      'gantry_step_failures_total',
      'Frames whose boxes left without what a step of the ensemble says of them: it failed, or was late.',
      ['step', 'reason'],
    ),
    batchSize: new Histogram({
      name: 'gantry_batch_size',
      help: 'Frames in one run.',
      labelNames: ['model'],
      buckets: [1, 2, 4, 8, 16, 32, 64],
      registers,
    }),
    sinkRecords: counter(
      'gantry_sink_records_total',
      'Records by sink and how they ended: `delivered`, `dropped`, `rejected`; `filtered` and `over_limit` (`maxPerMinute`) never were any.',
      ['sink', 'result'],
    ),
    sinkRejected: counter(
      'gantry_sink_rejected_records_total',
      'Records that the far side refuses for good, by reason.',
      ['sink', 'reason'],
    ),
    sinkDeadLetters: counter(
      'gantry_sink_dead_letters_total',
      'Of the refused records: those for the dead-letter topic, `written` there or `failed`.',
      ['sink', 'result'],
    ),
    sinkQueued: gauge('gantry_sink_queued_records', 'Records waiting for delivery.', ['sink']),
    sinkUp: gauge('gantry_sink_up', '1 while the sink can deliver.', ['sink']),
    cacheOperations: counter('gantry_cache_operations_total', 'Cache operations by result.', [
      'operation',
      'result',
    ]),
    cacheForeign: counter(
      'gantry_cache_foreign_keys_total',
      'Keys and values under ours in Redis that somebody else wrote, which are ignored.',
      ['operation'],
    ),
    streamClients: gauge(
      'gantry_stream_clients',
      'Connected WebSocket clients, other nodes of a cluster among them.',
      [],
    ),
    streamMessages: counter('gantry_stream_messages_total', 'WebSocket messages by what became of them.', [
      'result',
    ]),
    streamUp: gauge(
      'gantry_stream_up',
      '1 while the stream process is ready, or waits for its first client.',
      [],
    ),
    streamRestarts: counter('gantry_stream_restarts_total', 'Restarts of the stream process.', []),
    streamRss: gauge('gantry_stream_resident_memory_bytes', 'Resident memory of the stream process.', []),
    streamCpu: counter('gantry_stream_cpu_seconds_total', 'CPU time of the stream process.', []),
    streamLoopP99: gauge(
      'gantry_stream_eventloop_p99_seconds',
      'p99 delay of the loop of the stream process, last second.',
      [],
    ),
    engineUp: gauge('gantry_engine_up', '1 while the engine is ready.', ['engine']),
    executionProvider: gauge(
      'gantry_execution_provider',
      '1 for the execution provider that runs a model, 0 for one that is installed and fails to; device is the number of the GPU, engine is empty for the models of API clients.',
      ['engine', 'model', 'version', 'provider', 'device'],
    ),
    ensembleChanges: counter(
      'gantry_ensemble_changes_total',
      'Changes of the ensemble of the cameras, by what became of them: kept, taken_back or refused.',
      ['outcome'],
    ),
    engineRestarts: counter('gantry_engine_restarts_total', 'Engine restarts.', ['engine']),
    engineInstanceExits: counter(
      'gantry_engine_instance_exits_total',
      'Inference instances that ended unasked.',
      ['engine'],
    ),
    engineRss: gauge('gantry_engine_resident_memory_bytes', 'Resident memory of an engine.', ['engine']),
    engineCpu: counter('gantry_engine_cpu_seconds_total', 'CPU time of an engine without its decoders.', [
      'engine',
    ]),
    engineLoopP99: gauge(
      'gantry_engine_eventloop_p99_seconds',
      'p99 delay of the loop of an engine, last second.',
      ['engine'],
    ),
    modelServerUp: gauge(
      'gantry_model_server_up',
      '1 while the model server is ready, or is started by whoever asks first.',
      [],
    ),
    modelServerRestarts: counter('gantry_model_server_restarts_total', 'Restarts of the model server.', []),
    modelServerRss: gauge(
      'gantry_model_server_resident_memory_bytes',
      'Resident memory of the model server.',
      [],
    ),
    modelServerCpu: counter('gantry_model_server_cpu_seconds_total', 'CPU time of the model server.', []),
    modelServerLoopP99: gauge(
      'gantry_model_server_eventloop_p99_seconds',
      'p99 delay of the loop of the model server, last second.',
      [],
    ),
  }
}
