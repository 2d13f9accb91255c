import { type MachineKind } from '../scenario/schema.js'
import { crane } from './crane.js'
import { dumpTruck } from './dump-truck.js'
import { excavator } from './excavator.js'
import { forklift } from './forklift.js'
import { type MachineBuilder } from './machine.js'
import { press } from './press.js'
import { truck } from './truck.js'
import { wheelLoader } from './wheel-loader.js'

export const machineBuilders: Readonly<Record<MachineKind, MachineBuilder>> = {
  forklift,
  excavator,
  press,
  crane,
  'wheel-loader': wheelLoader,
  'dump-truck': dumpTruck,
  truck,
}
