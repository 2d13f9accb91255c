import { savedToken } from './token.js'
import type {
  Camera,
  CameraPreview,
  Coverage,
  DetectionsMessage,
  ModelList,
  Problem,
  Status,
} from './types.js'

/** An answer that is an error, with everything the server said about it. */
export class ApiError extends Error {
  constructor(readonly problem: Pick<Problem, 'status' | 'detail' | 'hint' | 'code' | 'problems'>) {
    super(problem.detail)
    this.name = 'ApiError'
  }
}

/** The service did not answer at all. */
export class UnreachableError extends Error {
  constructor(cause: unknown) {
    super('The service does not answer.', { cause })
    this.name = 'UnreachableError'
  }
}

export type Snapshot = Readonly<{
  blob: Blob
  etag: string | undefined
  /** `isOwn`: in the resolution of the camera, else as the model saw it. */
  facts: Readonly<{ isOwn: boolean; size: string; capturedAt: string | undefined }>
}>

export type NewCameraForm = Readonly<Record<string, unknown>>

/** Paths are relative to the page, so that it also works under a path of a reverse proxy. */
export const api = {
  status: (signal?: AbortSignal) => ask<Status>('api/v1/status', { signal }),
  cameras: async (signal?: AbortSignal) =>
    (await ask<{ items: Camera[] }>('api/v1/cameras', { signal })).items,
  recent: async (limit: number, signal?: AbortSignal) =>
    (await ask<{ items: DetectionsMessage[] }>(`api/v1/detections?limit=${limit}`, { signal })).items,
  addCamera: (camera: NewCameraForm) => ask<Camera>('api/v1/cameras', { method: 'POST', body: camera }),
  coverage: (query: string, signal?: AbortSignal) => ask<Coverage>(`api/v1/coverage?${query}`, { signal }),
  camera: (id: string) => ask<Camera>(cameraPath(id), {}),
  changeCamera: (id: string, changes: NewCameraForm) =>
    ask<Camera>(cameraPath(id), { method: 'PATCH', body: changes }),
  preview: (body: NewCameraForm, signal: AbortSignal) =>
    ask<CameraPreview>('api/v1/cameras/preview', { method: 'POST', body, signal }),
  /** A picture in the resolution of the camera, where there is one. @param asked - `unless` it is the picture of that name: then `known`. */
  snapshot: async (
    id: string,
    { overlay, unless }: Readonly<{ overlay: boolean; unless?: string | undefined }>,
    signal?: AbortSignal,
  ): Promise<Snapshot | 'known'> => {
    const path = `${cameraPath(id)}/snapshot.jpg?overlay=${overlay ? 1 : 0}`
    const response = await answerOf(path, { signal, unless })
    if (response.status === 304) return 'known'
    const { headers } = response
    return {
      blob: await response.blob(),
      etag: headers.get('etag') ?? undefined,
      facts: {
        isOwn: headers.get('gantry-picture') === 'own',
        size: (headers.get('gantry-picture-size') ?? '').replace('x', ' × '),
        capturedAt: headers.get('gantry-captured-at') ?? undefined,
      },
    }
  },
  setEnabled: (id: string, enabled: boolean) =>
    ask<Camera>(cameraPath(id), { method: 'PATCH', body: { enabled } }),
  models: (signal?: AbortSignal) => ask<ModelList>('api/v1/models', { signal }),
  /** Starts a model server that sleeps. */
  wakeModels: () => ask<unknown>('v2/repository/index', { method: 'POST', body: {} }),
  /** Where models are loaded as they are asked for, that loads it. */
  askForModel: (name: string) => ask<unknown>(`v2/models/${encodeURIComponent(name)}`, {}),
  loadModel: (name: string) => ask<unknown>(`${modelPath(name)}/load`, { method: 'POST', body: {} }),
  unloadModel: (name: string) => ask<unknown>(`${modelPath(name)}/unload`, { method: 'POST', body: {} }),
  removeCamera: (id: string) => ask<undefined>(cameraPath(id), { method: 'DELETE' }),
}

function modelPath(name: string): string {
  return `v2/repository/models/${encodeURIComponent(name)}`
}

function cameraPath(id: string): string {
  return `api/v1/cameras/${encodeURIComponent(id)}`
}

type Ask = Readonly<{
  method?: string
  body?: unknown
  signal?: AbortSignal | undefined
  /** Name of what is here already. */
  unless?: string | undefined
}>

/** @throws ApiError, UnreachableError */
async function ask<T>(path: string, asked: Ask): Promise<T> {
  const response = await answerOf(path, asked)
  return response.status === 204 ? (undefined as T) : ((await response.json()) as T)
}

/** An answer that is no error. @throws ApiError, UnreachableError */
async function answerOf(path: string, { method = 'GET', body, signal, unless }: Ask): Promise<Response> {
  const token = savedToken()
  const response = await fetch(path, {
    method,
    headers: {
      accept: 'application/json, image/jpeg',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(unless === undefined ? {} : { 'if-none-match': unless }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    throw signal?.aborted ? error : new UnreachableError(error)
  })
  if (response.ok || response.status === 304) return response
  const answer: unknown = await response.json().catch(() => undefined)
  throw new ApiError(problemOf(answer, response.status))
}

function problemOf(answer: unknown, status: number): ApiError['problem'] {
  if (typeof answer === 'object' && answer !== null && 'code' in answer && 'problems' in answer)
    return answer as Problem
  // The form of the model server.
  if (typeof answer === 'object' && answer !== null && 'error' in answer && typeof answer.error === 'string')
    return { status, detail: answer.error, hint: '', code: 'GANTRY_INTERNAL', problems: [] }
  return {
    status,
    detail: `The service answered with status ${status}.`,
    hint: '',
    code: 'GANTRY_INTERNAL',
    problems: [],
  }
}
