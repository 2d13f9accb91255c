import { describe, expect, it } from 'vitest'
import { PlayListError, rewritePlayList } from '../../src/sources/play-list.js'

const base = new URL('http://u:p@cam:8080/live/list.m3u8?x=1')
const rewrite = (...lines: readonly string[]) =>
  rewritePlayList(['#EXTM3U', ...lines].join('\n'), base, (content, url) => `${content}:${url.href}`)
    .trimEnd()
    .split('\n')
    .slice(1)

describe('rewritePlayList', () => {
  it('names pieces, keys and heads of pieces, and keeps what else ffmpeg reads', () => {
    expect(
      rewrite(
        '#EXT-X-VERSION:7',
        '#EXT-X-TARGETDURATION:4',
        '#EXT-X-MEDIA-SEQUENCE:17',
        '#EXT-X-PLAYLIST-TYPE:VOD',
        '#EXT-X-MAP:URI="init.mp4",BYTERANGE="812@0"',
        '#EXT-X-KEY:METHOD=AES-128,URI="https://keys/k?a=1&b=2",IV=0x0123abCD,KEYFORMAT="identity"',
        '#EXTINF:3.96,title, with "quotes"',
        '#EXT-X-BYTERANGE:1000@2000',
        '/a b/1.ts\r',
        '# a remark',
        '#EXT-X-DISCONTINUITY',
        '#EXTINF:4',
        '//other/2.ts',
        '#EXT-X-ENDLIST',
      ),
    ).toEqual([
      '#EXT-X-VERSION:7',
      '#EXT-X-TARGETDURATION:4',
      '#EXT-X-MEDIA-SEQUENCE:17',
      '#EXT-X-PLAYLIST-TYPE:VOD',
      '#EXT-X-MAP:URI="media:http://u:p@cam:8080/live/init.mp4",BYTERANGE="812@0"',
      '#EXT-X-KEY:METHOD=AES-128,IV=0x0123abCD,URI="media:https://keys/k?a=1&b=2"',
      '#EXTINF:3.96,',
      '#EXT-X-BYTERANGE:1000@2000',
      'media:http://u:p@cam:8080/a%20b/1.ts',
      '#EXT-X-DISCONTINUITY',
      '#EXTINF:4,',
      'media:http://other/2.ts',
      '#EXT-X-ENDLIST',
    ])
  })

  it('names lists of a list as such, and leaves sound and subtitles out', () => {
    expect(
      rewrite(
        '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="n",URI="a.m3u8"',
        '#EXT-X-MEDIA:TYPE=VIDEO,GROUP-ID="v",NAME="n",URI="v.m3u8"',
        '#EXT-X-STREAM-INF:BANDWIDTH=128000,CODECS="avc1.4d,mp4a",AUDIO="a",VIDEO="v"',
        'low.m3u8',
        'stray.ts',
      ),
    ).toEqual([
      '#EXT-X-MEDIA:TYPE=VIDEO,GROUP-ID="v",NAME="n",URI="list:http://u:p@cam:8080/live/v.m3u8"',
      '#EXT-X-STREAM-INF:BANDWIDTH=128000,VIDEO="v"',
      'list:http://u:p@cam:8080/live/low.m3u8',
    ])
  })

  it('takes what is a piece and a list at once for a list', () => {
    expect(rewrite('#EXTINF:1,', '#EXT-X-STREAM-INF:BANDWIDTH=1', 'both').at(-1)).toMatch(/^list:/)
    expect(rewrite('#EXT-X-STREAM-INF:BANDWIDTH=1', '#EXTINF:1,', 'both').at(-1)).toMatch(/^list:/)
  })

  it.each([
    ['#EXTINF:1,', 'tcp://10.0.0.9/x.ts'],
    ['#EXTINF:1,', 'file:///etc/passwd'],
    ['#EXT-X-KEY:METHOD=AES-128,URI="httpproxy://10.0.0.9/k"'],
    ['#EXT-X-KEY:METHOD=AES-128,URI=httpproxy://10.0.0.9/k'],
    ['#EXT-X-KEY:URI="good",URI="data:,x"'],
    ['#EXT-X-MAP:URI="crypto+tcp://10.0.0.9/k"'],
    ['#EXT-X-STREAM-INF:BANDWIDTH=1', 'rtmp://10.0.0.9/x'],
    ['#EXT-X-STREAM-INF:BANDWIDTH=1\0tcp://10.0.0.9/x'],
    ['#EXTINF:1,', 'http://['],
  ])('refuses what is fetched otherwise: %s %s', (...lines) => {
    expect(() => rewrite(...lines)).toThrow(PlayListError)
  })

  it.each(['', '<html>', ' #EXTM3U', '#EXTM3U8\n'])('refuses what is no play list: %j', (text) => {
    expect(() => rewritePlayList(text, base, () => '')).toThrow('the play list cannot be read')
  })

  it('S3: writes no line but of its own, whatever stands in the values', () => {
    const lines = rewrite(
      '#EXT-X-MEDIA:TYPE=VIDEO,GROUP-ID="g\\",URI=tcp://x",NAME="n",URI="v\t.m3u8"',
      '#EXT-X-START:TIME-OFFSET=-3,PRECISE=YES,URI="tcp://x"',
      '#EXT-X-SESSION-KEY:METHOD=AES-128,URI="tcp://x"',
      '#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="tcp://x"',
      '#EXT-X-PART:DURATION=1,URI="tcp://x"',
    )
    expect(lines.join('\n')).not.toContain('tcp:')
  })
})
