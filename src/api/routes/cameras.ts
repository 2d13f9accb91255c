import { cameraPatchSchema, newCameraSchema } from '../../config/camera.js'
import { cameraPreviewRequestSchema } from '../../config/camera-preview.js'
import { cameraFaults } from '../../config/camera-setting-faults.js'
import { mask } from '../../config/redact.js'
import {
  acceptedFrameSchema,
  admittedCameraSchema,
  cameraListSchema,
  cameraPathSchema,
  cameraViewSchema,
  snapshotQuerySchema,
} from '../camera-schemas.js'
import { detectionsMessageSchema } from '../../messages/detections-message.js'
import { pictureTypes } from '../picture-body.js'
import { cameraPreviewSchema } from '../preview-schema.js'
import { BadRequestError, NothingYetError, type FieldProblem } from '../errors.js'
import { etagOf } from '../etag.js'
import { route, type RouteContext } from '../route.js'

/** @throws CameraNotFoundError */
async function cameraOfPath({
  path,
  context,
}: {
  path: { id: string }
  context: RouteContext
}): Promise<void> {
  await context.gantry.camera(path.id)
}

function faultsOf(body: unknown): FieldProblem[] {
  return cameraFaults(body).map(({ setting, problem, fix }) => ({
    path: setting,
    message: `${problem}. ${fix}`,
  }))
}

/** Of a change. What is given back as it is shown, with a mask for the login, stays as it is: the camera that is there decides. */
function faultsOfChange(body: unknown): FieldProblem[] {
  if (typeof body !== 'object' || body === null) return []
  const isMasked = (value: unknown): boolean =>
    typeof value === 'string' && (value === mask || value.includes(`${mask}@`))
  return faultsOf(Object.fromEntries(Object.entries(body).filter(([, value]) => !isMasked(value))))
}

const snapshotHeaders = {
  'gantry-picture': '`own`: at the resolution of the camera; `analysed`: at the size that the model saw.',
  'gantry-picture-size': 'Width and height in pixels, such as `1280x720`.',
  'gantry-captured-at': 'When the picture came, RFC 3339 in UTC.',
  etag: 'Name of this very picture, for `If-None-Match`.',
} as const

/** Cameras, live: none of these touches a camera other than its own. */
export const cameraRoutes = [
  route({
    method: 'GET',
    path: '/api/v1/cameras',
    auth: 'token',
    tag: 'cameras',
    summary: 'Every camera with its state and figures',
    responses: { 200: { description: 'The cameras.', schema: cameraListSchema } },
    problems: [],
    handle: async ({ context }) => ({ body: { items: await context.gantry.cameras() } }),
  }),
  route({
    method: 'POST',
    path: '/api/v1/cameras',
    auth: 'token',
    tag: 'cameras',
    summary: 'Add a camera',
    bodySchema: newCameraSchema,
    alsoWrong: faultsOf,
    responses: { 201: { description: 'Added; connecting now.', schema: admittedCameraSchema } },
    problems: [400, 409, 415, 503],
    handle: async ({ body, context }) => {
      const camera = await context.gantry.addCamera(body)
      return {
        status: 201,
        headers: { location: `/api/v1/cameras/${encodeURIComponent(camera.id)}` },
        body: camera,
      }
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/cameras/preview',
    auth: 'token',
    tag: 'cameras',
    summary: 'Try a camera before it is added or changed: its first picture, or why there is none',
    bodySchema: cameraPreviewRequestSchema,
    alsoWrong: faultsOfChange,
    responses: {
      200: { description: 'What the camera gives. Nothing is stored.', schema: cameraPreviewSchema },
    },
    problems: [400, 415, 503],
    handle: async ({ body, context, signal }) => {
      const isThere = (await context.gantry.cameras()).some(({ id }) => id === body.id)
      if (!isThere && body.url === undefined)
        throw new BadRequestError('the body has a problem', [{ path: 'url', message: 'is required' }])
      return { body: await context.gantry.previewCamera(body, signal) }
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/cameras/{id}',
    auth: 'token',
    tag: 'cameras',
    summary: 'One camera',
    pathSchema: cameraPathSchema,
    responses: { 200: { description: 'The camera.', schema: cameraViewSchema } },
    problems: [404],
    handle: async ({ path, context }) => ({ body: await context.gantry.camera(path.id) }),
  }),
  route({
    method: 'PATCH',
    path: '/api/v1/cameras/{id}',
    auth: 'token',
    tag: 'cameras',
    summary: 'Change a camera; what is absent stays as it is',
    pathSchema: cameraPathSchema,
    bodySchema: cameraPatchSchema,
    alsoWrong: faultsOfChange,
    responses: { 200: { description: 'The camera as it is now.', schema: admittedCameraSchema } },
    problems: [400, 404, 415, 503],
    find: cameraOfPath,
    handle: async ({ path, body, context }) => ({ body: await context.gantry.patchCamera(path.id, body) }),
  }),
  route({
    method: 'DELETE',
    path: '/api/v1/cameras/{id}',
    auth: 'token',
    tag: 'cameras',
    summary: 'Remove a camera',
    pathSchema: cameraPathSchema,
    responses: { 204: { description: 'Removed.' } },
    problems: [404, 503],
    handle: async ({ path, context }) => {
      await context.gantry.removeCamera(path.id)
      return { status: 204 }
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/cameras/{id}/frames',
    auth: 'token',
    tag: 'cameras',
    summary: 'Hand a picture to a camera whose URL is push:',
    pathSchema: cameraPathSchema,
    pictureTypes,
    find: cameraOfPath,
    responses: { 202: { description: 'Accepted for analysis.', schema: acceptedFrameSchema } },
    problems: [400, 404, 409, 415, 503],
    handle: async ({ path, body, context }) => ({
      status: 202,
      body: await context.gantry.pushFrame(path.id, body as Uint8Array),
    }),
  }),
  route({
    method: 'GET',
    path: '/api/v1/cameras/{id}/snapshot.jpg',
    auth: 'token',
    tag: 'cameras',
    summary:
      'The newest picture at the resolution of the camera where that can be had, else as it was analysed',
    pathSchema: cameraPathSchema,
    querySchema: snapshotQuerySchema,
    responses: {
      200: { description: 'The picture.', type: 'image/jpeg', headers: snapshotHeaders },
      304: { description: 'The newest picture is the one that `If-None-Match` names.' },
    },
    problems: [400, 404, 503],
    handle: async ({ path, query, context }) => {
      const wishes = { overlay: query.overlay, own: query.size === 'own' }
      const { jpeg, picture, widthPx, heightPx, capturedAtMs } = await context.gantry.snapshot(
        path.id,
        wishes,
      )
      const headers = {
        'gantry-picture': picture,
        'gantry-picture-size': `${widthPx}x${heightPx}`,
        'gantry-captured-at': new Date(capturedAtMs).toISOString(),
        etag: etagOf(jpeg),
      }
      return { type: 'image/jpeg', headers, body: jpeg }
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/cameras/{id}/latest',
    auth: 'token',
    tag: 'cameras',
    summary: 'The last result',
    pathSchema: cameraPathSchema,
    responses: { 200: { description: 'The result.', schema: detectionsMessageSchema } },
    problems: [404, 503],
    handle: async ({ path, context }) => {
      await context.gantry.camera(path.id)
      const latest = await context.gantry.latest(path.id)
      if (latest === undefined) throw new NothingYetError(path.id)
      return { body: latest }
    },
  }),
]
