import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import {
  isPassing,
  isSystemLimit,
  limitsOf,
  shortage,
  SystemLimitError,
  systemLimit,
  systemLimitIn,
} from '../../src/lifecycle/system-limit.js'
import { InternalError, RemoteError } from '../../src/errors.js'

const error = (code: string, syscall: string, message = code) =>
  Object.assign(new Error(message), { code, syscall })

describe('systemLimit', () => {
  it.each([
    ['EMFILE', 'listen', /^no file descriptor is left for this process \(limit of open files: \d+\)$/],
    ['EMFILE', 'spawn ffmpeg', /^no file descriptor is left for this process/],
    ['ENFILE', 'open', /^no file descriptor is left in the whole system$/],
    ['EAGAIN', 'spawn ffmpeg', /^no further process or thread may be started.*: spawn ffmpeg$/],
    ['ENOMEM', 'spawn ffmpeg', /^the system has no memory left for it/],
    ['ENOSPC', 'write', /^the disk is full/],
    ['EDQUOT', 'write', /^the disk quota/],
    ['EROFS', 'mkdir', /^the file system is read-only/],
    ['EACCES', 'spawn ffmpeg', /^this user has no permission for it: spawn ffmpeg$/],
    ['EPERM', 'open', /^the system does not permit it/],
    ['EADDRNOTAVAIL', 'connect', /^no local port is left for a connection/],
    ['ENOBUFS', 'connect', /^the system has no buffer space/],
  ])('R23: tells %s of %s by its name, with what to do', (code, syscall, reason) => {
    const limit = systemLimit(new InternalError('outer', error(code, syscall)))
    expect(limit).toMatchObject({ code, reason: expect.stringMatching(reason) as string })
    expect(limit?.hint).toMatch(/^[A-Z].*\.$/)
  })

  it('knows a thread that cannot be started', () => {
    const thrown = error('ERR_WORKER_INIT_FAILED', '', 'Worker initialization failure: EAGAIN')
    expect(systemLimit(thrown)?.reason).toMatch(/^no further process or thread/)
  })

  it.each([
    ['ENOENT', 'spawn ffmpeg'],
    ['ECONNREFUSED', 'connect'],
    // A socket that has nothing to read, and an address of another machine.
    ['EAGAIN', 'read'],
    ['EADDRNOTAVAIL', 'listen'],
    ['ERR_WORKER_INIT_FAILED', ''],
  ])('takes %s of %s for what it is', (code, syscall) => {
    expect(systemLimit(error(code, syscall))).toBeUndefined()
  })

  it('names the file', () => {
    const thrown = Object.assign(error('EACCES', 'open'), { path: '/clips/a.mp4' })
    expect(systemLimit(thrown)?.reason).toBe('this user has no permission for it: /clips/a.mp4')
    expect(new SystemLimitError('x', { code: 'A', reason: 'b', hint: 'c' })).toMatchObject({
      code: 'GANTRY_ENVIRONMENT',
      message: 'x: b',
      hint: 'c',
    })
  })
})

it.each([
  ['setpriv: failed to execute ffmpeg: Resource temporarily unavailable', 'EAGAIN'],
  ['[fatal] pthread_create() failed: Resource temporarily unavailable. Try to increase', 'EAGAIN'],
  ['libavcodec.so.59: cannot open shared object file: Too many open files', 'EMFILE'],
  ['open: Too many open files in system', 'ENFILE'],
  ['[error] Cannot allocate memory', 'ENOMEM'],
  ['[error] No space left on device', 'ENOSPC'],
  ['[error] av_interleaved_write_frame(): Resource temporarily unavailable', undefined],
  ['setpriv: failed to execute ffmpeg: No such file or directory', undefined],
])('%s is %s', (line, code) => {
  expect(systemLimitIn(line)?.code).toBe(code)
})

it('reads the limits of a process, and finds none it has not reached', () => {
  const [soft, hard] = spawnSync('sh', ['-c', 'ulimit -Sn; ulimit -Hn'], { encoding: 'utf8' }).stdout.split(
    '\n',
  )
  expect(limitsOf('openFiles')).toEqual({
    soft: soft === 'unlimited' ? undefined : (expect.any(Number) as number),
    hard: hard === 'unlimited' ? undefined : Number(hard),
  })
  expect(limitsOf('openFiles', -1)).toEqual({ soft: undefined, hard: undefined })
  expect(shortage()).toBeUndefined()
})

describe('R46: isPassing', () => {
  it('takes a GPU that fails for what may be gone the next time, as a limit of the system, and no model that is wrong', () => {
    const thrown = (code: 'GANTRY_PROVIDER_FAILS' | 'GANTRY_PROVIDER_UNAVAILABLE' | 'GANTRY_MODEL_INVALID') =>
      new InternalError('cannot be loaded', new RemoteError({ code, message: 'why', hint: '' }))
    expect(isPassing(thrown('GANTRY_PROVIDER_FAILS'))).toBe(true)
    expect(isPassing(error('EMFILE', 'open'))).toBe(true)
    expect(isPassing(thrown('GANTRY_PROVIDER_UNAVAILABLE'))).toBe(false)
    expect(isPassing(thrown('GANTRY_MODEL_INVALID'))).toBe(false)
    expect(isSystemLimit(thrown('GANTRY_PROVIDER_FAILS'))).toBe(false)
  })
})
