import { expect, it } from 'vitest'
import { serverTarget } from '../../../src/tools/client/server-url.js'

it.each([
  [undefined, undefined, 'http://127.0.0.1:8000'],
  [undefined, 'grpc', 'grpc://127.0.0.1:8001'],
  ['triton:9000', undefined, 'http://triton:9000'],
  ['triton:9000', 'grpc', 'grpc://triton:9000'],
  ['triton', 'grpc', 'grpc://triton:8001'],
  ['http://triton', undefined, 'http://triton:8000'],
  ['http://triton:80', undefined, 'http://triton:80'],
  ['http://h:8001', 'grpc', 'grpc://h:8001'],
  ['https://models.example.com/team/', undefined, 'https://models.example.com:443/team'],
  ['https://h', 'grpc', 'grpcs://h:443'],
  ['grpcs://h:1', undefined, 'grpcs://h:1'],
  ['[::1]:8000', undefined, 'http://[::1]:8000'],
] as const)('reads %s with %s as %s', (text, protocol, url) => {
  expect(serverTarget(text, protocol).url).toBe(url)
})

it('takes the brackets from an address', () => {
  expect(serverTarget('grpc://[::1]:1', undefined)).toMatchObject({ host: '::1', port: 1, tls: false })
})

it.each([
  ['ftp://h', undefined],
  ['http://', undefined],
  ['h:99999', undefined],
  ['grpc://h:1', 'http'],
  ['grpc://h:1/path', undefined],
  ['http://h/?x=1', undefined],
  ['http://user:secret@h', undefined],
  ['user:secret@h', undefined],
  ['http://user:secret#x@h', undefined],
  ['user:p/secret@h', undefined],
] as const)('refuses %s with %s, without its secrets', (text, protocol) => {
  const read = () => serverTarget(text, protocol)
  expect(read).toThrow(expect.objectContaining({ code: 'GANTRY_USAGE' }) as Error)
  expect(read).not.toThrow('secret')
})
