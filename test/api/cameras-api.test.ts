import { describe, expect, it } from 'vitest'
import { cameraListSchema, cameraViewSchema } from '../../src/api/camera-schemas.js'
import { problemSchema, type Problem } from '../../src/api/problem.js'
import { fakeCamera, fakeResult } from '../support/fake-gantry.js'
import { ask, type Reply } from '../support/http.js'
import { serveFake } from '../support/serve-fake.js'

const dock = { id: 'dock-1', url: 'rtsp://127.0.0.1:8554/cam1' }
const jpeg = Uint8Array.of(0xff, 0xd8, 0xff, 0xe0, 1, 2, 3)
const png = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)

function problem(reply: Reply): Problem {
  expect(reply.headers['content-type']).toBe('application/problem+json; charset=utf-8')
  const parsed = problemSchema.parse(reply.json)
  expect(parsed.status).toBe(reply.status)
  return parsed
}

describe('cameras', () => {
  it('adds a camera with defaults filled in and says where it is', async () => {
    const { url } = await serveFake()
    const added = await ask(`${url}/api/v1/cameras`, { method: 'POST', body: dock })
    expect(added.status).toBe(201)
    expect(added.headers.location).toBe('/api/v1/cameras/dock-1')
    const camera = cameraViewSchema.parse(added.json)
    expect(camera.config).toMatchObject({ sampleFps: 5, transport: 'tcp', enabled: true })
    const found = await ask(`${url}${added.headers.location}`)
    expect(found.json).toEqual(camera)
    expect(cameraListSchema.parse((await ask(`${url}/api/v1/cameras`)).json).items).toHaveLength(1)
  })

  it('names every wrong field of a new camera at once', async () => {
    const { url } = await serveFake()
    const body = {
      id: 'no spaces!',
      sampleFps: 0,
      region: { x: 0.5, y: 0, width: 0.9, height: 1 },
      colour: 1,
      transprot: 'udp',
    }
    const reply = await ask(`${url}/api/v1/cameras`, { method: 'POST', body })
    expect(reply.status).toBe(400)
    const { code, problems, hint } = problem(reply)
    expect(code).toBe('GANTRY_BAD_REQUEST')
    expect(hint).not.toBe('')
    expect(problems.map(({ path }) => path).sort()).toEqual([
      'colour',
      'id',
      'region.width',
      'sampleFps',
      'transprot',
      'url',
    ])
    expect(problems.find(({ path }) => path === 'transprot')?.message).toBe(
      'is not known here; did you mean "transport"?',
    )
    expect(problems.find(({ path }) => path === 'colour')?.message).toContain('known here: id, name, url')
    expect(problems.find(({ path }) => path === 'url')?.message).toBe('is required')
  })

  it('puts an id that is taken and a URL that is refused beside their fields', async () => {
    const { url } = await serveFake()
    await ask(`${url}/api/v1/cameras`, { method: 'POST', body: dock })
    const twice = await ask(`${url}/api/v1/cameras`, { method: 'POST', body: dock })
    expect(twice.status).toBe(409)
    expect(problem(twice)).toMatchObject({ code: 'GANTRY_CAMERA_EXISTS', problems: [{ path: 'id' }] })
    const gopher = await ask(`${url}/api/v1/cameras`, {
      method: 'POST',
      body: { id: 'b', url: 'gopher://u:canary@h/' },
    })
    expect(gopher.status).toBe(400)
    expect(problem(gopher)).toMatchObject({ code: 'GANTRY_CAMERA_URL', problems: [{ path: 'url' }] })
    expect(gopher.text).not.toContain('canary')
  })

  it('tells of a wrong URL beside what the schema refuses', async () => {
    const { url } = await serveFake()
    const body = { id: 'b', url: 'ftp://u:canary@h/', analyseUrl: 'gopher://u:canary@h/', sampleFPS: 2 }
    for (const [path, method] of [
      ['', 'POST'],
      ['/dock-1', 'PATCH'],
    ] as const) {
      if (method === 'PATCH') await ask(`${url}/api/v1/cameras`, { method: 'POST', body: dock })
      const answer = await ask(`${url}/api/v1/cameras${path}`, { method, body })
      expect(answer.status).toBe(400)
      const { code, problems } = problem(answer)
      expect(code).toBe('GANTRY_BAD_REQUEST')
      expect(problems.find((one) => one.path === 'sampleFPS')?.message).toContain('did you mean "sampleFps"?')
      expect(problems.find((one) => one.path === 'url')?.message).toContain('has the scheme "ftp:"')
      expect(problems.find((one) => one.path === 'analyseUrl')?.message).toContain('has the scheme "gopher:"')
      expect(answer.text).not.toContain('canary')
    }
  })

  it('takes a camera back as it is shown, with masks for its logins', async () => {
    const { url } = await serveFake()
    const at = `${url}/api/v1/cameras/dock-1`
    await ask(`${url}/api/v1/cameras`, { method: 'POST', body: dock })
    const shown = { url: 'rtsp://***@192.0.2.10/1', analyseUrl: 'rtsp://***@192.0.2.10/2' }
    for (const body of [shown, { ...shown, username: '***', password: '***' }])
      expect((await ask(at, { method: 'PATCH', body })).status).toBe(200)
    // What is wrong beside them is told all the same.
    const wrong = { ...shown, displayAspectRatio: '16:9', sampleAspectRatio: '2:1', sampleFps: 'x' }
    const reply = await ask(at, { method: 'PATCH', body: wrong })
    expect(problemSchema.parse(reply.json).problems.map(({ path }) => path)).toEqual([
      'sampleFps',
      'sampleAspectRatio',
    ])
  })

  it('changes a camera, takes a setting away with null, and removes it', async () => {
    const { url } = await serveFake()
    await ask(`${url}/api/v1/cameras`, { method: 'POST', body: { ...dock, name: 'Dock' } })
    const at = `${url}/api/v1/cameras/dock-1`
    const changed = await ask(at, { method: 'PATCH', body: { enabled: false, name: null } })
    expect(changed.status).toBe(200)
    expect(cameraViewSchema.parse(changed.json)).toMatchObject({ status: { state: 'disabled' } })
    expect(cameraViewSchema.parse(changed.json).config.name).toBeUndefined()
    // Many clients send this type with everything.
    const headers = { 'content-type': 'application/json' }
    expect((await ask(at, { method: 'DELETE', headers })).status).toBe(204)
    const gone = await ask(at)
    expect(gone.status).toBe(404)
    expect(problem(gone).code).toBe('GANTRY_CAMERA_NOT_FOUND')
    expect((await ask(at, { method: 'DELETE' })).status).toBe(404)
  })

  it('never shows the credentials of a URL', async () => {
    const { url } = await serveFake()
    const analyseUrl = 'rtsp://viewer:S3cret%40y@127.0.0.1/2'
    const body = { id: 'a', url: 'rtsp://admin:S3cret%40x@127.0.0.1/1', analyseUrl }
    const texts = [
      await ask(`${url}/api/v1/cameras`, { method: 'POST', body }),
      await ask(`${url}/api/v1/cameras/a`),
    ]
    for (const { text } of texts) {
      expect(text).toContain('rtsp://***@127.0.0.1/1')
      expect(text).toContain('rtsp://***@127.0.0.1/2')
      expect(text).not.toContain('S3cret')
    }
  })

  it('S14: never shows a login beside the URL, and nothing of one that is refused', async () => {
    const { url } = await serveFake()
    const login = { username: 'canary-user', password: 'can#ary' }
    const body = { id: 'a', url: 'rtsp://127.0.0.1/1', ...login }
    const texts = [
      await ask(`${url}/api/v1/cameras`, { method: 'POST', body }),
      await ask(`${url}/api/v1/cameras/a`),
      await ask(`${url}/api/v1/cameras`),
      ...(await Promise.all(
        [
          { url: 'rtsp://admin:p@ss#canary@192.0.2.10/x' },
          { url: 'rtsp://192.0.2.10/x', username: 'u', password: 'can\nary' },
          { url: 'rtsp://192.0.2.10/x', username: 'u', password: ['canary'] },
          { url: 'rtsp://admin:canary@192.0.2.10/x', ...login },
          { url: 'rtsp://192.0.2.10/x', password: 'canary' },
        ].map((settings) =>
          ask(`${url}/api/v1/cameras`, { method: 'POST', body: { id: 'b', sampleFps: 0, ...settings } }),
        ),
      )),
    ]
    expect(texts.map(({ status }) => status)).toEqual([201, 200, 200, 400, 400, 400, 400, 400])
    for (const { text } of texts) expect(text).not.toMatch(/canary|can#ary|can.?nary/)
    expect(texts[3]?.text).toContain(
      '@ as %40 and # as %23 in user name and password: rtsp://***@192.0.2.10/x',
    )
    expect(problem(texts[4]!).problems).toContainEqual({
      path: 'password',
      message: 'must hold no line ends and no other control characters',
    })
    expect(problem(texts[6]!).problems.map(({ path }) => path)).toContain('username')
  })

  it.each([
    ['..%2f..%2fetc', 400],
    ['%2e%2e', 400],
    ['..', 400],
    ['a%00b', 400],
    ['..%5c..', 400],
    ['a%0ab', 400],
    [encodeURIComponent('é'.repeat(40)), 400],
    ['x'.repeat(5000), 400],
    ['%zz', 400],
  ])('S8: refuses the camera id %j', async (id, status) => {
    const { url } = await serveFake()
    const reply = await ask(`${url}/api/v1/cameras/${id}/latest`)
    expect(reply.status).toBe(status)
    problem(reply)
  })

  it('refuses bodies that would set a prototype', async () => {
    const { url } = await serveFake()
    const bodies = [
      '{"id":"a","url":"rtsp://h/","__proto__":{"polluted":1}}',
      '{"id":"a","url":"rtsp://h/","constructor":{"prototype":{"polluted":1}}}',
    ]
    for (const body of bodies) {
      const headers = { 'content-type': 'application/json' }
      const reply = await ask(`${url}/api/v1/cameras`, { method: 'POST', headers, body })
      expect(reply.status).toBe(400)
      problem(reply)
    }
    expect(Reflect.get({}, 'polluted')).toBeUndefined()
  })

  it.each([
    ['no JSON', '{', 'application/json', 400],
    ['an empty body', '', 'application/json', 400],
    ['an array', '[]', 'application/json', 400],
    ['a form', 'id=a&url=b', 'application/x-www-form-urlencoded', 415],
    ['JSON sent as text', '{"id":"a","url":"rtsp://h/"}', 'text/plain', 415],
    ['300 KiB of JSON', JSON.stringify({ id: 'a', url: 'x'.repeat(300 * 1024) }), 'application/json', 413],
  ])('S7: refuses %s', async (_, body, type, status) => {
    const { url } = await serveFake()
    const headers = { 'content-type': type }
    const reply = await ask(`${url}/api/v1/cameras`, { method: 'POST', headers, body })
    expect(reply.status).toBe(status)
    problem(reply)
  })
})

describe('frames of a push camera', () => {
  it('takes a JPEG and a PNG', async () => {
    const { url, gantry } = await serveFake()
    await gantry.addCamera(fakeCamera('p', { url: 'push:' }))
    const at = `${url}/api/v1/cameras/p/frames`
    const first = await ask(at, { method: 'POST', headers: { 'content-type': 'image/jpeg' }, body: jpeg })
    expect([first.status, first.json]).toEqual([202, { seq: 1 }])
    const second = await ask(at, { method: 'POST', headers: { 'content-type': 'image/png' }, body: png })
    expect([second.status, second.json]).toEqual([202, { seq: 2 }])
    expect(gantry.pushed).toEqual([
      { id: 'p', bytes: 7 },
      { id: 'p', bytes: 8 },
    ])
  })

  it.each([
    ['image/jpg', jpeg],
    ['image/pjpeg', jpeg],
    ['image/jfif', jpeg],
    ['IMAGE/JPEG', jpeg],
    ['image/jpeg; charset=binary', jpeg],
    ['image/jpeg;name="a;b.jpg"', jpeg],
    ['image/x-png', png],
    ['image/jpeg', png],
    ['image/png', jpeg],
    ['image/*', jpeg],
    ['application/octet-stream', jpeg],
    ['', png],
  ])('R60: takes a picture that is called %j by what it is', async (type, body) => {
    const { url, gantry } = await serveFake()
    await gantry.addCamera(fakeCamera('p', { url: 'push:' }))
    const headers: Record<string, string> = type === '' ? {} : { 'content-type': type }
    const reply = await ask(`${url}/api/v1/cameras/p/frames`, { method: 'POST', headers, body })
    expect([reply.status, reply.json]).toEqual([202, { seq: 1 }])
    expect(gantry.pushed).toEqual([{ id: 'p', bytes: body.length }])
  })

  it('does not take a picture of a page that does not say what it sends', async () => {
    const { url, gantry } = await serveFake()
    await gantry.addCamera(fakeCamera('p', { url: 'push:' }))
    const headers = { origin: url }
    const reply = await ask(`${url}/api/v1/cameras/p/frames`, { method: 'POST', headers, body: jpeg })
    expect(reply.status).toBe(415)
    expect(problem(reply).hint).toContain('image/jpeg or image/png')
  })

  it('says how large a picture may be, and what allows for more', async () => {
    const { url, gantry } = await serveFake({ maxBodyBytes: 1024 })
    await gantry.addCamera(fakeCamera('p', { url: 'push:' }))
    const headers = { 'content-type': 'image/jpeg' }
    const body = Buffer.concat([jpeg, Buffer.alloc(2048)])
    const told = problem(await ask(`${url}/api/v1/cameras/p/frames`, { method: 'POST', headers, body }))
    expect(told.detail).toBe('the body is larger than the 1024 bytes that this path takes')
    expect(told.hint).toMatch(/raise server\.maxBodyBytes/)
  })

  it.each([
    ['JSON', 'application/json', '{}', 415, 'GANTRY_UNSUPPORTED_MEDIA'],
    ['a GIF', 'image/gif', 'GIF89a', 415, 'GANTRY_UNSUPPORTED_MEDIA'],
    ['a WebP', 'image/webp', 'RIFF', 415, 'GANTRY_UNSUPPORTED_MEDIA'],
    ['a GIF that says it is a JPEG', 'image/jpeg', 'GIF89a', 400, 'GANTRY_IMAGE_INVALID'],
    ['a form', 'multipart/form-data; boundary=x', jpeg, 415, 'GANTRY_UNSUPPORTED_MEDIA'],
    ['what a form sends', 'application/x-www-form-urlencoded', jpeg, 415, 'GANTRY_UNSUPPORTED_MEDIA'],
    ['text', 'text/plain', jpeg, 415, 'GANTRY_UNSUPPORTED_MEDIA'],
    ['what nobody names and is no picture', '', 'text', 400, 'GANTRY_IMAGE_INVALID'],
    ['no bytes', 'image/jpeg', '', 400, 'GANTRY_IMAGE_INVALID'],
    ['more than the limit', 'image/jpeg', Buffer.concat([jpeg, Buffer.alloc(2048)]), 413, 'GANTRY_TOO_LARGE'],
  ])('refuses %s', async (_, type, body, status, code) => {
    const { url, gantry } = await serveFake({ maxBodyBytes: 1024 })
    await gantry.addCamera(fakeCamera('p', { url: 'push:' }))
    const reply = await ask(`${url}/api/v1/cameras/p/frames`, {
      method: 'POST',
      headers: { 'content-type': type },
      body,
    })
    expect(reply.status).toBe(status)
    expect(problem(reply).code).toBe(code)
    expect(gantry.pushed).toEqual([])
  })

  it.each([
    ['a picture', 'POST', '/frames', 'image/jpeg', jpeg],
    ['what is no picture', 'POST', '/frames', 'image/jpeg', 'text'],
    ['a change', 'PATCH', '', 'application/json', '{"sampleFps":1}'],
    ['a wrong change', 'PATCH', '', 'application/json', '{"sampleFps":"fast"}'],
  ])(
    'says of %s for a camera there is not that the camera is not there',
    async (_, method, end, type, body) => {
      const { url } = await serveFake()
      const headers = { 'content-type': type }
      const reply = await ask(`${url}/api/v1/cameras/nobody${end}`, { method, headers, body })
      expect(reply.status).toBe(404)
      expect(problem(reply).code).toBe('GANTRY_CAMERA_NOT_FOUND')
    },
  )

  it('refuses a picture for a camera that has a URL of its own', async () => {
    const { url, gantry } = await serveFake()
    await gantry.addCamera(fakeCamera('a'))
    const headers = { 'content-type': 'image/jpeg' }
    const reply = await ask(`${url}/api/v1/cameras/a/frames`, { method: 'POST', headers, body: jpeg })
    expect(reply.status).toBe(409)
    expect(problem(reply).code).toBe('GANTRY_CAMERA_NOT_PUSH')
  })
})

describe('snapshot and latest', () => {
  it('answer 404 until there is a result, then the picture and the message', async () => {
    const { url, gantry } = await serveFake()
    await gantry.addCamera(fakeCamera('a'))
    const at = `${url}/api/v1/cameras/a`
    for (const path of ['latest', 'snapshot.jpg']) {
      const none = await ask(`${at}/${path}`)
      expect(none.status).toBe(404)
      expect(problem(none).code).toBe('GANTRY_NOT_FOUND')
    }
    const result = fakeResult('a', 1)
    gantry.emit(result)
    expect((await ask(`${at}/latest`)).json).toEqual(result)
    const picture = await ask(`${at}/snapshot.jpg?overlay=1`)
    expect(picture.headers['content-type']).toBe('image/jpeg')
    expect(picture.bytes.subarray(0, 3)).toEqual(Buffer.of(0xff, 0xd8, 0xff))
    expect((await ask(`${at}/snapshot.jpg?overlay=maybe`)).status).toBe(400)
  })

  it('send a picture no second time to who names it', async () => {
    const { url, gantry } = await serveFake()
    await gantry.addCamera(fakeCamera('a'))
    gantry.emit(fakeResult('a', 1))
    const at = `${url}/api/v1/cameras/a/snapshot.jpg`
    const { etag = '' } = (await ask(at)).headers as { etag?: string }
    const again = await ask(at, { headers: { 'if-none-match': `"other", W/${etag}` } })
    expect([again.status, again.bytes.length]).toEqual([304, 0])
    expect(again.headers).toMatchObject({ etag, 'gantry-picture': 'own', 'cache-control': 'no-store' })
    gantry.snapshotJpeg = Buffer.of(0xff, 0xd8, 0xff, 1)
    expect((await ask(at, { headers: { 'if-none-match': etag } })).status).toBe(200)
  })
})
