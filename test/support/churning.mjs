// Makes objects that outlive a collection or two, and prints how large the young generation has become.
// usage: node churning.mjs keep|grow
import { getHeapSpaceStatistics } from 'node:v8'
import { keepYoungGenerationSmall } from '../../dist/lifecycle/v8-flags.js'

if (process.argv[2] === 'keep') keepYoungGenerationSmall()
const window = []
for (let at = 0; at < 2_000_000; at += 1) window[at % 50_000] = { at, text: `number ${at}` }
const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')
process.stdout.write(String(young.space_size))
