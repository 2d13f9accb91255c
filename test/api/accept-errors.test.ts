import { once } from 'node:events'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { surviveAcceptErrors } from '../../src/api/accept-errors.js'
import { recordingLog } from '../support/silent-log.js'

function server(): Server {
  const made = createServer()
  onTestFinished(() => void made.close())
  return made
}

it('leaves a port that is taken to whoever listens, alone', async () => {
  const first = server()
  await once(first.listen(0, '127.0.0.1'), 'listening')
  const { log, lines } = recordingLog()
  const second = server()
  surviveAcceptErrors(second, log)
  second.listen((first.address() as AddressInfo).port, '127.0.0.1')
  const [error] = (await once(second, 'error')) as [NodeJS.ErrnoException]
  expect([error.code, lines]).toEqual(['EADDRINUSE', []])
})

it('tells of connections that could not be taken, with the limit, once a minute', async () => {
  const listening = server()
  await once(listening.listen(0, '127.0.0.1'), 'listening')
  const { log, lines } = recordingLog()
  surviveAcceptErrors(listening, log)
  for (let i = 0; i < 3; i++)
    listening.emit('error', Object.assign(new Error('accept EMFILE'), { code: 'EMFILE', syscall: 'accept' }))
  const reason = expect.stringContaining('no file descriptor is left') as string
  expect(lines).toMatchObject([{ msg: 'a connection could not be taken', reason }])
})
