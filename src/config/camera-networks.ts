import { BlockList } from 'node:net'
import { z } from 'zod'
import { addNetwork } from './network.js'

/** `192.168.7.0/24`, `fe80::/10`, or one address. */
const networkSchema = z
  .string()
  .refine(isNetwork, 'must be an address or a network such as 169.254.0.0/16 or fe80::/10')

export const cameraNetworksSchema = z.strictObject({
  allow: z
    .array(networkSchema)
    .default([])
    .describe(
      'Networks cameras may be opened in although they are closed by default: link-local (169.254.0.0/16, fe80::/10), metadata services of clouds, multicast; and 127.0.0.0/8 and ::1 for cameras added over an API that other machines reach.',
    ),
  deny: z
    .array(networkSchema)
    .default([])
    .describe('Networks no camera may be opened in, such as 127.0.0.0/8; goes before `allow`.'),
})
export type CameraNetworks = Readonly<z.infer<typeof cameraNetworksSchema>>

function isNetwork(text: string): boolean {
  try {
    addNetwork(new BlockList(), text)
    return true
  } catch {
    return false
  }
}
