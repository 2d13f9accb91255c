import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import sharp from 'sharp'
import { TestService } from '../support/service.js'
import { until } from '../support/until.js'

describe('cameras that come and go', () => {
  let service: TestService
  let jpeg: Buffer

  beforeAll(async () => {
    jpeg = await sharp({ create: { width: 320, height: 180, channels: 3, background: 'grey' } })
      .jpeg()
      .toBuffer()
    service = await TestService.start()
  })
  afterAll(async () => service?.[Symbol.asyncDispose]())

  const received = (id: string) =>
    service.metric(new RegExp(`gantry_frames_received_total\\{camera="${id}"\\}`))
  const ended = (id: string) => service.metric(new RegExp(`gantry_frames_total\\{camera="${id}",.*\\}`))

  async function pushed(id: string): Promise<number> {
    const headers = { 'content-type': 'image/jpeg' }
    const response = await service.fetch(`/api/v1/cameras/${id}/frames`, {
      method: 'POST',
      headers,
      body: new Uint8Array(jpeg),
    })
    return response.status
  }

  it('accounts for every frame of a camera that is removed while it works, and added again at once', async () => {
    let accepted = 0
    for (let round = 0; round < 4; round += 1) {
      await service.send('POST', '/api/v1/cameras', { id: 'churn', url: 'push:' })
      await until('a camera that takes pictures', async () => (await pushed('churn')) === 202)
      accepted += 1
      const statuses = await Promise.all(Array.from({ length: 4 }, () => pushed('churn')))
      accepted += statuses.filter((status) => status === 202).length
      await service.json('/api/v1/cameras/churn', { method: 'DELETE' })
    }
    await until('the last account', async () => (await ended('churn')) === accepted)
    expect(await received('churn')).toBe(accepted)
  })

  it('shows at once that a camera is switched off, and that it is switched on', async () => {
    await service.send('POST', '/api/v1/cameras', { id: 'switched', url: 'push:' })
    await until('a camera that takes pictures', async () => (await pushed('switched')) === 202)
    const off = await service.send('PATCH', '/api/v1/cameras/switched', { enabled: false })
    expect(off).toMatchObject({ status: { state: 'disabled', reason: 'switched off' } })
    await service.cameraIs('switched', 'disabled')
    const on = await service.send('PATCH', '/api/v1/cameras/switched', { enabled: true })
    expect(on).toMatchObject({ status: { state: 'connecting' } })
    await until('a camera that takes pictures', async () => (await pushed('switched')) === 202)
  })
})
