import { type Scenario } from '../scenario/schema.js'
import { secondsOf } from '../world/clock.js'
import { smoothstep } from '../world/easing.js'
import { faultsAt } from '../world/faults.js'

export interface FaultUniforms {
  noise: number
  blurPx: number
  cover: number
  gain: number
}

/** The faults that happen in lens and sensor; blocky, frozen and black happen behind them (render/pictures.ts). */
export function faultUniforms(scenario: Scenario, frame: number): FaultUniforms {
  const timeS = secondsOf(frame)
  const uniforms: FaultUniforms = { noise: 0, blurPx: 0, cover: 0, gain: 1 }
  for (const { kind, fromS, strength } of faultsAt(scenario, frame)) {
    switch (kind) {
      case 'noise':
        uniforms.noise += 0.05 + 0.3 * strength
        break
      case 'blur':
        uniforms.blurPx += (3 + 13 * strength) * smoothstep(fromS - 1e-6, fromS + 0.4, timeS)
        break
      case 'exposure':
        uniforms.gain *= 2 ** (1 + 3 * strength)
        break
      case 'covered':
        uniforms.cover = Math.max(
          uniforms.cover,
          smoothstep(fromS - 0.1, fromS + 0.4, timeS) * (0.2 + 0.8 * strength),
        )
        break
      case 'moved':
      case 'blocky':
      case 'frozen':
      case 'black':
        break
      default:
        kind satisfies never
    }
  }
  return uniforms
}
