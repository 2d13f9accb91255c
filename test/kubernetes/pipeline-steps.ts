import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { dockClip } from '../support/demo-cameras.js'
import { mainScript } from '../support/gantry-process.js'
import { ffmpegRun } from '../support/video-clips.js'
import type { ControlPlane } from './control-plane.js'
import { platformPython } from './serving-steps.js'

const components = join(import.meta.dirname, '../../deploy/kfp')

const runLocally = `
import glob, json, sys
sys.path.insert(0, sys.argv[1])
import gantry_components as gantry
from kfp import local
local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=sys.argv[3])
found = gantry.gantry_batch(inputs=[sys.argv[2]], model="ppe", format="coco")
assert found.outputs["Output"] == 1, found.outputs
print(open(found.outputs["failures"].path).read())
run = gantry.score_and_compare(pictures=sys.argv[2], others=["ppe_detect", "ppe_detect_int8"])
[folder] = glob.glob(sys.argv[3] + "/gantry-2*/gantry-eval")
[scores] = json.load(open(folder + "/executor_output.json"))["artifacts"]["scores"]["artifacts"]
print(open(folder + "/report").read()[:15])
print(json.dumps({"map": run.output, **scores["metadata"]}))
`

/** Kubeflow's compiler takes the pipeline, and its local runner runs the steps with the real commands. */
export async function runsPipelines({ folder }: ControlPlane): Promise<void> {
  const python = platformPython()
  const compiled = join(folder, 'pipeline.yaml')
  await promisify(execFile)(python, [join(components, 'gantry_components.py'), compiled])
  const { deploymentSpec } = parse(readFileSync(compiled, 'utf8').split('\n---\n')[0] ?? '') as {
    deploymentSpec: { executors: Record<string, { container: { image: string } }> }
  }
  assert.deepEqual(Object.keys(deploymentSpec.executors), ['exec-gantry-batch', 'exec-gantry-eval'])

  const [pictures, programs] = [join(folder, 'pictures'), join(folder, 'programs')]
  mkdirSync(pictures)
  mkdirSync(programs)
  await ffmpegRun('-i', dockClip, '-vf', 'fps=1', '-frames:v', '6', '-q:v', '3', join(pictures, '%02d.jpg'))
  writeFileSync(join(pictures, 'torn.jpg'), 'no picture')
  const gantry = `#!/bin/sh\nexec '${process.execPath}' '${mainScript}' "$@"\n`
  writeFileSync(join(programs, 'gantry'), gantry, { mode: 0o755 })
  const { stdout } = await promisify(execFile)(
    python,
    ['-c', runLocally, components, pictures, join(folder, 'artifacts')],
    {
      env: {
        ...process.env,
        PYTHONDONTWRITEBYTECODE: '1',
        PATH: `${dirname(python)}:${programs}:${process.env['PATH']}`,
      },
      maxBuffer: 64 * 1024 ** 2,
    },
  )
  const [scores = '', page = ''] = stdout.trim().split('\n').toReversed()
  assert.match(stdout, /torn\.jpg/)
  assert.match(page, /^<!doctype html/i)
  const told = JSON.parse(scores) as Record<string, number>
  assert.equal(told['map'], told['ppe_detect_mAP'])
  // The labels are what the same detector found at another size.
  for (const model of ['ppe_detect', 'ppe_detect_int8']) assert.ok((told[`${model}_mAP`] ?? 0) > 0.3, scores)
}
