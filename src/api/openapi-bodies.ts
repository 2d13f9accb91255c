import type { z } from 'zod'
import { cameraPatchSchema, newCameraSchema } from '../config/camera.js'
import { cameraPreviewRequestSchema } from '../config/camera-preview.js'
import { cameraPreviewSchema } from './preview-schema.js'
import { ensembleChangeSchema } from '../config/ensemble-change.js'
import { detectionsMessageSchema } from '../messages/detections-message.js'
import {
  acceptedFrameSchema,
  admittedCameraSchema,
  cameraListSchema,
  cameraViewSchema,
} from './camera-schemas.js'
import { detectionsPageSchema, eventsPageSchema } from './past-schemas.js'
import { headroomSchema } from './headroom-schemas.js'
import {
  healthSchema,
  readinessAnswerSchema,
  readinessSchema,
  readinessStatusSchema,
  statusSchema,
} from './readiness-schemas.js'
import { coverageSchema } from './coverage-schema.js'
import { ensembleSchema } from './ensemble-schema.js'
import { modelListSchema } from './models-schema.js'
import {
  indexRequestSchema,
  indexSchema,
  inferRequestSchema,
  inferResponseSchema,
  kserveErrorSchema,
  loadRequestSchema,
  logSettingsSchema,
  modelConfigurationSchema,
  modelMetadataSchema,
  nothingSchema,
  serverMetadataSchema,
  sharedMemoryRegisterSchema,
  sharedMemoryStatusSchema,
  statisticsSchema,
  traceSettingsSchema,
  unloadRequestSchema,
} from './kserve/kserve-schemas.js'
import { problemSchema } from './problem.js'
import { exampleValues } from './openapi-examples.js'

/** How a body stands in the document: its name, and an example where it is one of a request or an answer by itself. */
type DescribedBody = Readonly<{ name: string; example?: unknown }>

const {
  settings,
  camera,
  preview,
  detections,
  readiness,
  webhooks,
  mqtt,
  kafka,
  models,
  coverage,
  headroom,
} = exampleValues
const tensor = { name: 'images', datatype: 'FP32', shape: [1, 4] }
const duration = { count: 120, ns: 2_940_000_000 }

/** Bodies of requests, by their schema. A test reads every example with it. */
export const requestBodies = new Map<z.ZodType, DescribedBody>([
  [
    newCameraSchema,
    {
      name: 'NewCamera',
      example: { id: 'dock-1', name: 'Dock, north side', url: settings.url, sampleFps: 5 },
    },
  ],
  [cameraPreviewRequestSchema, { name: 'CameraPreviewRequest', example: { url: settings.url } }],
  [cameraPatchSchema, { name: 'CameraPatch', example: { sampleFps: 2, enabled: true } }],
  [ensembleChangeSchema, { name: 'EnsembleChange', example: { name: 'ppe' } }],
  [
    inferRequestSchema,
    {
      name: 'InferRequest',
      example: {
        id: '7',
        inputs: [{ ...tensor, data: [0.1, 0.2, 0.3, 0.4] }],
        outputs: [{ name: 'classes' }],
      },
    },
  ],
  [indexRequestSchema, { name: 'IndexRequest', example: { ready: true } }],
  [loadRequestSchema, { name: 'LoadRequest', example: { parameters: { config: '{"max_batch_size": 4}' } } }],
  [unloadRequestSchema, { name: 'UnloadRequest', example: { parameters: { unload_dependents: true } } }],
  [
    sharedMemoryRegisterSchema,
    { name: 'SharedMemoryRegister', example: { key: '/input', offset: 0, byte_size: 1_048_576 } },
  ],
  [
    traceSettingsSchema,
    { name: 'TraceSettings', example: { trace_level: ['TIMESTAMPS'], trace_rate: '100' } },
  ],
  [logSettingsSchema, { name: 'LogSettings', example: { log_verbose_level: 1, log_info: true } }],
])

/** The same of answers, and of what stands in several of them. */
export const answerBodies = new Map<z.ZodType, DescribedBody>([
  [cameraViewSchema, { name: 'Camera', example: camera }],
  [admittedCameraSchema, { name: 'AdmittedCamera', example: camera }],
  [cameraPreviewSchema, { name: 'CameraPreview', example: preview }],
  [cameraListSchema, { name: 'CameraList', example: { items: [camera] } }],
  [detectionsMessageSchema, { name: 'Detections', example: detections }],
  [
    detectionsPageSchema,
    { name: 'DetectionsPage', example: { items: [detections], nextCursor: 'eyJvIjoxfQ' } },
  ],
  [eventsPageSchema, { name: 'EventsPage', example: { items: [] } }],
  [acceptedFrameSchema, { name: 'AcceptedFrame', example: { seq: 51 } }],
  [readinessSchema, { name: 'Readiness', example: readiness }],
  [readinessStatusSchema, { name: 'ReadinessStatus' }],
  [readinessAnswerSchema, { name: 'ReadinessAnswer', example: readiness }],
  [
    statusSchema,
    {
      name: 'Status',
      example: {
        name: 'ppe',
        version: '0.1.0',
        nowMs: 1_795_844_420_606,
        gpus: [],
        kafka,
        webhooks,
        mqtt,
        ...readiness,
      },
    },
  ],
  [headroomSchema, { name: 'Headroom', example: headroom }],
  [coverageSchema, { name: 'Coverage', example: coverage }],
  [
    ensembleSchema,
    { name: 'Ensemble', example: { name: 'ppe', configured: 'ppe', state: 'steady', to: null, last: null } },
  ],
  [modelListSchema, { name: 'ModelList', example: models }],
  [healthSchema, { name: 'Health', example: { status: 'ok' } }],
  [
    problemSchema,
    {
      name: 'Problem',
      example: {
        type: 'urn:gantry:problem:camera-not-found',
        title: 'Not found',
        status: 404,
        detail: 'there is no camera "dok-1"',
        code: 'GANTRY_CAMERA_NOT_FOUND',
        hint: 'GET /api/v1/cameras lists the cameras there are.',
        problems: [],
      },
    },
  ],
  [
    kserveErrorSchema,
    { name: 'ModelServerError', example: { error: "Request for unknown model: 'ppee' is not found" } },
  ],
  [
    serverMetadataSchema,
    {
      name: 'ServerMetadata',
      example: { name: 'gantry', version: '0.1.0', extensions: ['statistics', 'binary_tensor_data'] },
    },
  ],
  [
    modelMetadataSchema,
    {
      name: 'ModelMetadata',
      example: {
        name: 'classifier',
        versions: ['1'],
        platform: 'onnxruntime_onnx',
        inputs: [{ name: 'images', datatype: 'FP32', shape: [-1, 4] }],
        outputs: [{ name: 'classes', datatype: 'FP32', shape: [-1, 2] }],
      },
    },
  ],
  [
    modelConfigurationSchema,
    {
      name: 'ModelConfiguration',
      example: {
        name: 'classifier',
        platform: 'onnxruntime_onnx',
        backend: 'onnxruntime',
        max_batch_size: 8,
        input: [{ name: 'images', data_type: 'TYPE_FP32', dims: [4] }],
        output: [{ name: 'classes', data_type: 'TYPE_FP32', dims: [2] }],
      },
    },
  ],
  [
    statisticsSchema,
    {
      name: 'Statistics',
      example: {
        model_stats: [
          {
            name: 'classifier',
            version: '1',
            last_inference: 1_795_844_130_421,
            inference_count: 120,
            execution_count: 60,
            inference_stats: {
              success: duration,
              fail: { count: 0, ns: 0 },
              queue: { count: 120, ns: 31_000_000 },
            },
            response_stats: {},
            batch_stats: [
              { batch_size: 2, compute_input: duration, compute_infer: duration, compute_output: duration },
            ],
            memory_usage: [],
          },
        ],
      },
    },
  ],
  [
    inferResponseSchema,
    {
      name: 'InferResponse',
      example: {
        id: '7',
        model_name: 'classifier',
        model_version: '1',
        outputs: [{ name: 'classes', datatype: 'FP32', shape: [1, 2], data: [0.9, 0.1] }],
      },
    },
  ],
  [
    indexSchema,
    {
      name: 'RepositoryIndex',
      example: [
        { name: 'classifier', version: '1', state: 'READY' },
        { name: 'broken', version: '1', state: 'UNAVAILABLE', reason: 'input "images" is not there' },
      ],
    },
  ],
  [
    sharedMemoryStatusSchema,
    {
      name: 'SharedMemoryStatus',
      example: [{ name: 'input', key: '/input', offset: 0, byte_size: 1_048_576 }],
    },
  ],
  [nothingSchema, { name: 'Nothing', example: [] }],
])
