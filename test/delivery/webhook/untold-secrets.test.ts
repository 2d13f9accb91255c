import { expect, it } from 'vitest'
import { withoutSecretPieces } from '../../../src/delivery/webhook/untold-secrets.js'

const basic = `Basic ${Buffer.from('dock:p4ss').toString('base64')}`

it.each([
  ['a token without its scheme', 'Bearer abc.def-12345', 'no such token abc.def-12345', 'no such token ***'],
  ['a whole header', 'Bearer abc.def-12345', 'got Bearer abc.def-12345', 'got ***'],
  ['what Basic encodes', basic, `unknown ${basic.slice(6)}`, 'unknown ***'],
  ['its login', basic, 'no dock:p4ss here', 'no *** here'],
  ['its password', basic, 'p4ss is wrong', '*** is wrong'],
  ['a segment of a path', '/services/T0/p4thSecret', '{"hook":"p4thSecret"}', '{"hook":"***"}'],
  ['a value of a query', '?code=a%2Fb%2Bc%3D%3D1', 'code a/b+c==1', 'code ***'],
  ['the same as it was sent', '?code=a%2Fb%2Bc%3D%3D1', 'code a%2Fb%2Bc%3D%3D1', 'code ***'],
  ['the key of a signature', 'whsec_c2VjcmV0IQ==', 'key c2VjcmV0IQ==', 'key ***=='],
  ['no word that is short', '/api/v1/hook', 'this api has no hook v1', 'this api has no hook v1'],
  ['the longest first', '/hooks/abcdefgh/abcdefghij', 'abcdefghij', '***'],
  ['an escape that is none', '/hooks/%zz%zz%zz', 'no %zz%zz%zz', 'no ***'],
])('S36: masks %s', (_, secret, text, told) => {
  expect(withoutSecretPieces(text, [secret])).toBe(told)
})
