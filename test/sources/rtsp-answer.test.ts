import { describe, expect, it } from 'vitest'
import { AddressPolicy } from '../../src/lifecycle/address-policy.js'
import { cleanAnswer } from '../../src/sources/rtsp-answer.js'
import { CameraAnswerError } from '../../src/sources/rtsp-splitter.js'

const policy = new AddressPolicy({ allow: [], deny: ['10.0.0.9'] })
const rules = { own: '10.0.0.5', refusal: (address: string) => policy.refusalFrom(address, 'private') }

function clean(headers: readonly (readonly [string, string])[], body = ''): string {
  const message = { first: 'RTSP/1.0 200 OK', headers, body: Buffer.from(body) }
  return cleanAnswer(message, '7', 'rtsp://cam:554/s', rules).toString('latin1')
}

const transport = (value: string) => /^transport: (.*)\r$/im.exec(clean([['transport', value]]))?.[1]

describe('cleanAnswer', () => {
  it('S3: keeps what ffmpeg reads, and nothing that leads it elsewhere or asks for a login', () => {
    const text = clean([
      ['CSeq', '99'],
      ['Session', '1;timeout=60'],
      ['Location', 'rtsp://10.0.0.9/'],
      ['WWW-Authenticate', 'Basic realm="x"'],
      ['Public', 'OPTIONS\nLocation: rtsp://10.0.0.9/'],
    ])
    expect(text).toBe(
      'RTSP/1.0 200 OK\r\nCSeq: 7\r\nSession: 1;timeout=60\r\nPublic: OPTIONS Location: rtsp://10.0.0.9/\r\n\r\n',
    )
  })

  it.each([
    ['RTP/AVP/TCP;unicast;interleaved=0-1;ssrc=1', 'RTP/AVP/TCP;unicast;interleaved=0-1'],
    ['RTP/AVP/TCP;interleaved=2;source=10.0.0.9;server_port=1-2', undefined],
    [
      'RTP/AVP;unicast;client_port=5000-5001;server_port=6000-6001',
      'RTP/AVP;unicast;client_port=5000-5001;server_port=6000-6001;source=10.0.0.5',
    ],
    ['RTP/AVP/UDP;source=10.0.0.7;server_port=6000', 'RTP/AVP/UDP;unicast;server_port=6000;source=10.0.0.7'],
    ['RTP/AVP;source=10.0.0.9;server_port=6000', 'RTP/AVP;unicast;server_port=6000;source=10.0.0.5'],
    ['RTP/AVP;source=127.0.0.1;server_port=6000', 'RTP/AVP;unicast;server_port=6000;source=10.0.0.5'],
    ['RTP/AVP;source=0.0.0.0;server_port=6000', 'RTP/AVP;unicast;server_port=6000;source=10.0.0.5'],
    ['RTP/AVP;source=metadata;server_port=6000', 'RTP/AVP;unicast;server_port=6000;source=10.0.0.5'],
    [
      'RTP/AVP;unicast;server_port=6000, RTP/AVP;source=10.0.0.9',
      'RTP/AVP;unicast;server_port=6000;source=10.0.0.5',
    ],
    [
      'RTP/AVP;multicast;destination=10.0.0.7;port=6000-6001',
      'RTP/AVP;multicast;port=6000-6001;destination=10.0.0.7',
    ],
  ])('of the transport %s it leaves %s', (given, left) => {
    if (left === undefined) expect(() => transport(given)).toThrow(CameraAnswerError)
    else expect(transport(given)).toBe(left)
  })

  it.each([
    'RTP/AVP;server_port=53',
    'RTP/AVP;multicast;destination=224.1.2.3',
    'RTP/AVP;multicast',
    '',
    '!',
  ])('refuses the transport %j', (given) => {
    expect(() => transport(given)).toThrow(CameraAnswerError)
  })

  it('takes addresses out of a description, and says what it is relative to', () => {
    const sdp =
      'v=0\r\nc=IN IP4 10.0.0.9\r\na=source-filter: incl IN IP4 * 10.0.0.9\nm=video 0 RTP/AVP 96\na=control:track1\n'
    const text = clean([['Content-Type', 'application/sdp']], sdp)
    expect(text).not.toContain('10.0.0.9')
    expect(text).toContain('Content-Base: rtsp://cam:554/s\r\n')
    expect(text).toContain('m=video 0 RTP/AVP 96\r\na=control:track1\r\n')
    expect(
      clean(
        [
          ['Content-Type', 'application/sdp'],
          ['Content-Base', 'rtsp://other/'],
        ],
        sdp,
      ),
    ).toContain('Content-Base: rtsp://other/\r\n')
  })
})
