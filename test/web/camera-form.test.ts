import { describe, expect, it } from 'vitest'
import { emptyForm, newCamera, suggestId } from '../../web/src/views/camera-form.js'

describe('the form of a new camera', () => {
  it.each([
    ['rtsp://192.0.2.10/Streaming/Channels/102', 'Channels-102'],
    ['rtsp://admin:secret@cam.local:554/dock', 'dock'],
    ['rtsp://cam.local:554', 'cam-local'],
    ['http://cam?user=admin&password=c4nary', 'cam'],
    // What a password is cut at.
    ['rtsp://admin:p@ss/c4nary@192.0.2.10/hall', 'hall'],
    ['rtsp://admin:p#c4nary@192.0.2.10/hall', 'hall'],
    ['rtsp://admin:p?c4nary/x@192.0.2.10', '192-0-2-10'],
  ])('suggests an id for %s, and nothing of its login', (url, id) => {
    expect(suggestId(url)).toBe(id)
  })

  it('sends a login as it was typed, and none where there is none', () => {
    const body = newCamera({ ...emptyForm, url: ' rtsp://h/x ', username: 'a', password: ' p ' })
    expect(body).toMatchObject({ url: 'rtsp://h/x', username: 'a', password: ' p ' })
    expect(newCamera({ ...emptyForm, url: 'x' })).not.toHaveProperty('password')
  })
})
