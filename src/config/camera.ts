import { z } from 'zod'
import { leastPixelAspect, mostPixelAspect, ratioForm, ratioOf } from './aspect-ratio.js'

/** Ids become Kafka keys, Redis keys, metric labels and path segments; so they are short and plain. */
export const cameraIdSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
    'must be 1-64 letters, digits, ".", "_" or "-", starting with a letter or digit',
  )
  .describe('Name of the camera in records, keys, metrics and paths; 1-64 letters, digits, ".", "_" or "-".')

/** Part of the source picture, as fractions of its size, so that it survives a change of resolution. */
const regionSchema = z
  .strictObject({
    x: z.number().min(0).max(1).describe('Left edge, 0..1 of the width.'),
    y: z.number().min(0).max(1).describe('Top edge, 0..1 of the height.'),
    width: z.number().gt(0).max(1).describe('As a fraction of the width.'),
    height: z.number().gt(0).max(1).describe('As a fraction of the height.'),
  })
  .refine((r) => r.x + r.width <= 1.000001, { path: ['width'], message: 'x + width must be <= 1' })
  .refine((r) => r.y + r.height <= 1.000001, { path: ['height'], message: 'y + height must be <= 1' })

const staticSceneSchema = z.strictObject({
  maxAgeMs: z
    .number()
    .int()
    .min(50)
    .max(60_000)
    .default(1_000)
    .describe('Longest a result is used again; then a frame is analysed, changed or not.'),
  minChange: z
    .number()
    .min(1)
    .max(255)
    .default(10)
    .describe('Difference of brightness, 0-255, of any cell of 8 x 8 model pixels that counts as a change.'),
})
export type StaticSceneConfig = Readonly<z.infer<typeof staticSceneSchema>>

/** Width to height. */
function ratioSchema(least: number, most: number) {
  return z
    .string()
    .regex(ratioForm, 'must be width to height, such as 16:9')
    .refine((text) => !ratioForm.test(text) || (ratioOf(text) >= least && ratioOf(text) <= most), {
      message: `must lie between 1:${most} and ${most}:1`,
    })
}

const urlSchema = z.string().min(1).max(4096)

/** Of an account: any text of one line, as it is. */
function loginSchema(most: number) {
  return z
    .string()
    .max(most)
    .refine(
      (text) => !/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(text),
      'must hold no line ends and no other control characters',
    )
}

const cameraFields = {
  name: z.string().max(128).optional().describe('For people; the id is used when absent.'),
  url: urlSchema.describe(
    'rtsp:// or rtsps:// camera, http(s):// stream, HLS list or snapshot (one picture for each request), a path or file:// of a video, ' +
      'a picture or a folder of them (relative to this file), or push: for a camera that POSTs its pictures.',
  ),
  analyseUrl: urlSchema
    .optional()
    .describe(
      'Sub-stream of the camera, as `url` is written: it is analysed in place of `url`, whose stream is then opened for snapshots alone. ' +
        'Boxes are in pixels of the sub-stream.',
    ),
  username: loginSchema(256)
    .optional()
    .describe(
      'Account on the camera, in place of a login inside of `url` and `analyseUrl`; written as it is, without escapes. Shown to nobody.',
    ),
  password: loginSchema(1024)
    .optional()
    .describe(
      'Of that account; `""` where it has none. Write ${NAME} or ${file:PATH}, not the password itself.',
    ),
  sampleFps: z.number().gt(0).max(120).default(5).describe('Frames analysed per second, at most.'),
  transport: z.enum(['tcp', 'udp']).default('tcp').describe('RTP transport of an RTSP camera.'),
  region: regionSchema.optional().describe('Region of interest: only this part is analysed.'),
  maxWidthPx: z
    .number()
    .int()
    .min(64)
    .max(8192)
    .optional()
    .describe('Resolution cap: wider pictures are scaled down to this before the letterbox.'),
  displayAspectRatio: ratioSchema(1 / 16, 16)
    .optional()
    .describe(
      'Shape of the whole picture as it is to be shown, such as `16:9` for a recorder that sends 640x720 and does not say that its pixels are wide. Absent: as the stream signals.',
    ),
  sampleAspectRatio: ratioSchema(leastPixelAspect, mostPixelAspect)
    .optional()
    .describe('The same as the shape of a pixel, such as `2:1`, in place of `displayAspectRatio`.'),
  hwaccel: z
    .enum(['none', 'auto', 'vaapi', 'cuda'])
    .default('none')
    .describe(
      "Hardware decoding; falls back to software. `cuda`: on the GPU of the camera's engine, as far as `decoding.gpuMemoryShare` goes; so does `auto` where there is one.",
    ),
  decode: z
    .enum(['full', 'fast', 'keyframes', 'auto'])
    .default('full')
    .describe(
      '`full`: every picture. `fast`: without the loop filter of pictures that no other one needs. `keyframes`: key frames alone. ' +
        '`auto`: key frames alone while they come as often as `sampleFps` asks, else `full`.',
    ),
  videoTrack: z
    .number()
    .int()
    .min(1)
    .max(32)
    .default(1)
    .describe(
      'Which video is analysed, of a file or stream that has several (two angles): counted from 1, without cover pictures.',
    ),
  loop: z.boolean().default(true).describe('Files and folders: begin anew at the end.'),
  stallTimeoutMs: z
    .number()
    .int()
    .min(500)
    .max(600_000)
    .optional()
    .describe(
      'Silence after which the decoder is restarted. Absent: 5 s, and longer for a camera that sends pictures more rarely, or at times none: that is learnt.',
    ),
  frozenAfterMs: z
    .number()
    .int()
    .min(0)
    .max(3_600_000)
    .default(30_000)
    .describe('Warn when the very same picture comes for this long; 0 never warns.'),
  staticScene: staticSceneSchema
    .optional()
    .describe(
      'While the picture does not change, use the last result again instead of analysing. Absent: every frame is analysed.',
    ),
  enabled: z.boolean().default(true).describe('Switched off, a camera is kept and not opened.'),
}

export const cameraSchema = z.strictObject({ id: cameraIdSchema, ...cameraFields })
export type CameraConfig = Readonly<z.infer<typeof cameraSchema>>

/** Body of `POST /api/v1/cameras`. */
export const newCameraSchema = cameraSchema.extend({
  persist: z.boolean().default(false).describe('Keep the camera over a restart of the service.'),
})
export type NewCamera = Readonly<z.infer<typeof newCameraSchema>>

/** Body of `PATCH /api/v1/cameras/{id}`: what is absent stays as it is, `null` takes an optional setting away. */
export const cameraPatchSchema = z.strictObject({
  name: cameraFields.name.nullable(),
  url: cameraFields.url.optional(),
  analyseUrl: cameraFields.analyseUrl.nullable(),
  username: cameraFields.username.nullable(),
  password: cameraFields.password.nullable(),
  sampleFps: cameraFields.sampleFps.unwrap().optional(),
  transport: cameraFields.transport.unwrap().optional(),
  region: cameraFields.region.nullable(),
  maxWidthPx: cameraFields.maxWidthPx.nullable(),
  displayAspectRatio: cameraFields.displayAspectRatio.nullable(),
  sampleAspectRatio: cameraFields.sampleAspectRatio.nullable(),
  hwaccel: cameraFields.hwaccel.unwrap().optional(),
  decode: cameraFields.decode.unwrap().optional(),
  videoTrack: cameraFields.videoTrack.unwrap().optional(),
  loop: cameraFields.loop.unwrap().optional(),
  stallTimeoutMs: cameraFields.stallTimeoutMs.nullable(),
  frozenAfterMs: cameraFields.frozenAfterMs.unwrap().optional(),
  staticScene: cameraFields.staticScene.nullable(),
  enabled: cameraFields.enabled.unwrap().optional(),
  persist: z.boolean().optional(),
})
export type CameraPatch = Readonly<z.infer<typeof cameraPatchSchema>>
