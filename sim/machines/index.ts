import { type MachineKind } from '../scenario/schema.js'
import { crane } from './crane.js'
import { excavator } from './excavator.js'
import { forklift } from './forklift.js'
import { type MachineBuilder } from './machine.js'
import { press } from './press.js'
import { truck } from './truck.js'

export const machineBuilders: Readonly<Record<MachineKind, MachineBuilder>> = {
  forklift,
  excavator,
  press,
  crane,
  truck,
}
