import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { holdsLogin, rawLogin, withLogin } from '../../src/config/url-login.js'

describe('a login that must be escaped', () => {
  it.each([
    ['rtsp://admin:p@ss#word@192.0.2.10/x', '@ as %40 and # as %23', 'rtsp://***@192.0.2.10/x'],
    ['rtsp://admin:p@ss/word@192.0.2.10/x', '@ as %40 and / as %2F', 'rtsp://***@192.0.2.10/x'],
    ['rtsp://admin:p@ss?word@192.0.2.10/x', '@ as %40 and ? as %3F', 'rtsp://***@192.0.2.10/x'],
    ['rtsp://admin:pass#word@192.0.2.10/x', '# as %23', 'rtsp://***@192.0.2.10/x'],
    ['rtsp://user:pass/word@host/x', '/ as %2F', 'rtsp://***@host/x'],
    ['rtsp://user:p?ss@host', '? as %3F', 'rtsp://***@host'],
    ['rtsp://user:p#ss@host', '# as %23', 'rtsp://***@host'],
    ['rtsp://user:#ss@host', '# as %23', 'rtsp://***@host'],
    ['rtsp://user:/ss@host/x', '/ as %2F', 'rtsp://***@host/x'],
    ['rtsp://user:?ss@host/x', '? as %3F', 'rtsp://***@host/x'],
    ['rtsp://us#er:pw@host', '# as %23', 'rtsp://***@host'],
    ['rtsp://us/er:pw@192.0.2.10/x', '/ as %2F', 'rtsp://***@192.0.2.10/x'],
    ['rtsp://us?er:pw@host', '? as %3F', 'rtsp://***@host'],
    // What is cut off reads like a port, which hides it.
    ['rtsp://admin:1234#5@192.0.2.10/x', '# as %23', 'rtsp://***@192.0.2.10/x'],
    ['rtsp://admin:1234/5@192.0.2.10/x', '/ as %2F', 'rtsp://***@192.0.2.10/x'],
    ['rtsp://admin:1234?5@192.0.2.10/x', '? as %3F', 'rtsp://***@192.0.2.10/x'],
    ['rtsp://admin:1234/5@camera/x', '/ as %2F', 'rtsp://***@camera/x'],
    ['rtsp://hans:1234/5@cam.example/x', '/ as %2F', 'rtsp://***@cam.example/x'],
    ['rtsp://hans:1234/5@[2001:db8::7]:554/x', '/ as %2F', 'rtsp://***@[2001:db8::7]:554/x'],
    ['rtsp://admin:1@2/3@192.0.2.10', '@ as %40 and / as %2F', 'rtsp://***@192.0.2.10'],
    // The host is the first that is one, so that a path may go on with "@".
    ['rtsp://admin:p#w@192.0.2.10/path@x', '# as %23', 'rtsp://***@192.0.2.10/path@x'],
    ['rtsps://a:b#c@[2001:db8::7]/x?y=z@w', '# as %23', 'rtsps://***@[2001:db8::7]/x?y=z@w'],
    ['http://admin:p\\w@host/x', '\\ as %5C', 'http://***@host/x'],
    ['rtsp://admin:p\\w@host/x', '\\ as %5C', 'rtsp://***@host/x'],
    ['rtsp://admin:pa ss@host/x', 'a space as %20', 'rtsp://***@host/x'],
    ['rtsp://admin:50%/x@host/y', '/ as %2F and % as %25', 'rtsp://***@host/y'],
    ['rtsp://admin:50%%40@host/y', '% as %25', 'rtsp://***@host/y'],
    ['rtsp://ädmin:ö#ü@host/y', '# as %23', 'rtsp://***@host/y'],
    [
      'http://admin:p@s#w?o/r\\d x@192.0.2.10:8080/v?u=1#2',
      '@ as %40, # as %23, ? as %3F, / as %2F, \\ as %5C and a space as %20',
      'http://***@192.0.2.10:8080/v?u=1#2',
    ],
    ['rtsp://admin:line\nend#1@192.0.2.10/x', '# as %23', 'rtsp://***@192.0.2.10/x'],
  ])('%s: %s', (url, escapes, meant) => {
    expect(rawLogin(url)).toEqual({ escapes, meant })
  })

  it.each([
    'rtsp://user:pass@host/x',
    'rtsp://user:pa:ss@host',
    'rtsp://us@er:pw@host',
    'rtsp://admin:p@ss@cam/s',
    'rtsp://admin:100%@cam/s',
    'rtsp://admin:p%40ss%3A%2F@cam/s',
    'rtsp://admin@192.0.2.10/x',
    'rtsp://:pw@192.0.2.10/x',
    'rtsp://@192.0.2.10/x',
    'rtsp://Jörg:Grüße@host',
    'rtsp://user:pass@[fd00::1]:554/x',
    'rtsp://[fd00::1]/a@b',
    'rtsp://host/path@x',
    'rtsp://host:554/path@x',
    'rtsp://mediamtx:8554/cam@lobby/sub',
    'rtsp://cam.example:554/a@192.0.2.1/b',
    'rtsp://192.0.2.10:554/proxy/admin:pw@192.0.2.11/x',
    'rtsp://admin:pw@192.0.2.10/path@x',
    'rtsp://admin:pw@192.0.2.10/path?mail=a@b.org',
    'rtsp://localhost:8554/cam@home.lan/x',
    'http://cam.example/cgi?mail=me@x.org',
    'http://admin:pw@cam.example/cgi?mail=me@x.org',
    'http://cam/?user=admin&password=x@y:z/#',
    'http://cam?user=a&password=b',
    'rtsp://cam/user=admin_password=x_channel=1',
    'file:///media/clip@home#1.mp4',
    'clip@home#1.mp4',
    'push:',
    '',
  ])('is none of %s', (url) => {
    expect(rawLogin(url)).toBeUndefined()
  })

  it.each([
    ['redis://:p@ss#w@host', '@ as %40 and # as %23', 'redis://***@host'],
    ['redis://default:12/34@host:6379', '/ as %2F', 'redis://***@host:6379'],
    ['redis://default:pw@127.0.0.1/x@y', '@ as %40 and / as %2F', 'redis://***@y'],
  ])('%s, whose path is no place for "@": %s', (url, escapes, meant) => {
    expect(rawLogin(url, false)).toEqual({ escapes, meant })
  })

  it.each([
    ['192.0.2.10', '192.0.2.10'],
    ['cam.example', 'cam.example'],
    ['[2001:db8::7]:554', '[2001:db8::7]'],
  ])('is found in whatever a password before %s is, and told without it', (host, name) => {
    const password = fc.string({ unit: fc.constantFrom(...'ab:/@#?%\\ 19.é'), minLength: 6, maxLength: 16 })
    fc.assert(
      fc.property(password, (secret) => {
        const url = `rtsp://hans:${secret}@${host}/x`
        const found = rawLogin(url)
        if (found !== undefined) expect(found.meant).toBe(`rtsp://***@${host}/x`)
        else expect(new URL(url).hostname).toBe(name)
      }),
      { numRuns: 3_000 },
    )
  })
})

describe('a URL with a login', () => {
  it.each([
    ['rtsp://192.0.2.10:554/x?y=1', 'rtsp://a%40b:p%3A%2F%23%25@192.0.2.10:554/x?y=1'],
    ['rtsp://@cam/x', 'rtsp://a%40b:p%3A%2F%23%25@cam/x'],
    ['http://cam', 'http://a%40b:p%3A%2F%23%25@cam/'],
    ['push:', 'push:'],
    ['clip.mp4', 'clip.mp4'],
    ['file:///clip.mp4', 'file:///clip.mp4'],
  ])('is made of %s', (url, whole) => {
    expect(withLogin(url, 'a@b', 'p:/#%')).toBe(whole)
  })

  it('has every name and password in it that there is', () => {
    const text = fc.string({ unit: 'binary', maxLength: 20 }).filter((part) => !/\p{Cs}/u.test(part))
    fc.assert(
      fc.property(text, text, (user, password) => {
        const { username: name, password: secret } = new URL(withLogin('rtsp://cam/x', user, password))
        expect([decodeURIComponent(name), decodeURIComponent(secret)]).toEqual([user, password])
      }),
    )
  })

  it.each([
    ['rtsp://a:b@cam/x', true],
    ['rtsp://a@cam/x', true],
    ['rtsp://:b@cam/x', true],
    ['rtsp://@cam/x', false],
    ['rtsp://cam/x', false],
    ['clip@x.mp4', false],
  ])('%s: %s', (url, holds) => {
    expect(holdsLogin(url)).toBe(holds)
  })
})
