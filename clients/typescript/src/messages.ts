/** Box in pixels of the camera's picture, origin top-left. */
export type BoxPx = Readonly<{ x1: number; y1: number; x2: number; y2: number }>

/** What later steps of the ensemble say of a detection, such as the colour of a helmet. */
export type Attribute = Readonly<{ name: string; value: string; score?: number | undefined }>

export type Detection = Readonly<{
  label: string
  /** Confidence, 0..1. */
  score: number
  /** Stable over the frames of one object, when tracking is on. */
  trackId?: number | undefined
  boxPx: BoxPx
  attributes?: readonly Attribute[] | undefined
}>

/** What was found in one frame; the value of a Kafka record, too. Later versions of the service add fields. */
export type Result = Readonly<{
  cameraId: string
  /** Frame number of the camera; what is left out was not analysed. */
  seq: number
  /** UTC time at which the frame arrived. */
  capturedAt: string
  /** Presentation time of the stream; may jump when the camera restarts. */
  ptsMs: number
  frame: Readonly<{ widthPx: number; heightPx: number; quality: 'ok' | 'suspect' }>
  model: Readonly<{ name: string; version: string }>
  detections: readonly Detection[]
  /** Frame whose detections these are, when the scene had not changed since; absent: its own. */
  resultOfSeq?: number | undefined
  timingsMs: Readonly<{ queue: number; infer: number; postprocess: number; captureToPublish: number }>
  /** Of a frame that is traced: its span, by W3C Trace Context. */
  traceparent?: string | undefined
  /** Of a cluster: the node that had the camera. What has a lower generation than was seen of a camera is of a former owner. */
  owner?: Readonly<{ node: string; generation: number }> | undefined
}>

/** A result of the live stream. */
export type DetectionsMessage = Result & Readonly<{ type: 'detections'; cursor: string }>

/** Told before the next message when something was left out for this client. */
export type GapMessage = Readonly<{
  type: 'gap'
  /** Results that were left out; 0 when it cannot be known. */
  dropped: number
  /** `slow_client`: this client read too slowly. `resume_expired`: it came back too late for what it missed. */
  reason: 'slow_client' | 'resume_expired'
}>

/** Header of a picture. The `detections` message that follows it has the same `cameraId` and `seq`. */
export type PictureHeader = Readonly<{
  type: 'picture'
  cameraId: string
  seq: number
  capturedAt: string
  /** Size of the JPEG. Boxes are in source pixels: scale by `widthPx / sourceWidthPx` after shifting. */
  widthPx: number
  heightPx: number
  /** Size in source pixels of the part that the picture shows. */
  sourceWidthPx: number
  sourceHeightPx: number
  /** Where that part begins in the source, with a region of interest. */
  sourceXPx: number
  sourceYPx: number
  mime: 'image/jpeg'
}>

export type PictureMessage = Readonly<{
  type: 'picture'
  header: PictureHeader
  jpeg: Uint8Array<ArrayBuffer>
}>

/** What a client subscribes to. What is left out is as the service has it: every camera, every label, every score, no pictures. */
export type Wants = Readonly<{
  cameras?: readonly string[] | undefined
  labels?: readonly string[] | undefined
  minScore?: number | undefined
  detections?: boolean | undefined
  /** Also the analysed pictures. */
  frames?: boolean | undefined
  /** With `frames`: of these cameras alone; left out: of all in `cameras`. */
  frameCameras?: readonly string[] | undefined
}>

export type HelloMessage = Readonly<{
  type: 'hello'
  protocol: 'gantry.v1'
  service: string
  version: string
  /** Of the newest message before this connection. */
  cursor: string
}>

export type SubscribedMessage = Readonly<{
  type: 'subscribed'
  cameras: readonly string[]
  labels: readonly string[]
  minScore: number
  detections: boolean
  events: boolean
  frames: boolean
  frameCameras?: readonly string[] | undefined
  resumeAfter?: string | undefined
}>

/** @see docs/errors.md for the codes; later versions may know more. */
export type ErrorMessage = Readonly<{ type: 'error'; code: string; message: string; hint: string }>

/** Answer to a ping: wall time of the service. */
export type PongMessage = Readonly<{ type: 'pong'; at: string }>

/** Every text message that a service sends. One of a later version may send others, which are passed over. */
export type ServerMessage =
  HelloMessage | SubscribedMessage | DetectionsMessage | GapMessage | ErrorMessage | PongMessage

/** What somebody who reads a stream gets. */
export type StreamMessage = DetectionsMessage | GapMessage | PictureMessage
