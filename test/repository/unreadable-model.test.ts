import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { addModel, redDetector } from '../support/onnx-models.js'
import { otherUserWorks, thrownForOther } from '../support/other-user.js'
import { tempDir } from '../support/temp-dir.js'

describe.skipIf(!otherUserWorks)('R23: a model that may not be read is not called missing or damaged', () => {
  function repository(locked: string, mode: number): string {
    const dir = tempDir()
    addModel(dir, 'red', { onnx: redDetector('uint8-nhwc'), config: 'name: "red"', labels: 'a' })
    chmodSync(dir, 0o755)
    chmodSync(join(dir, 'red', locked), mode)
    onTestFinished(() => chmodSync(join(dir, 'red', locked), 0o755))
    return dir
  }
  const refused = (locked: string) => ({
    code: 'GANTRY_ENVIRONMENT',
    message: expect.stringMatching(new RegExp(`this user has no permission for it: .*${locked}`)) as string,
  })

  it.each([
    ['config.pbtxt', 0],
    ['.', 0o644],
  ])('its %s', (locked, mode) => {
    const dir = repository(locked, mode)
    const entry = `readModel('${dir}', 'red')`
    expect(thrownForOther('repository/model-definition.js', entry)).toMatchObject(
      refused(locked === '.' ? 'red' : locked),
    )
    const folder = {
      name: 'red',
      repository: dir,
      dir: join(dir, 'red'),
      configFile: join(dir, 'red/config.pbtxt'),
    }
    const definition = `readDefinition(${JSON.stringify(folder)})`
    expect(thrownForOther('repository/model-definition.js', definition)).toMatchObject(
      refused(locked === '.' ? 'red' : locked),
    )
  })

  it('its model file', () => {
    const path = join(repository('1/model.onnx', 0), 'red/1/model.onnx')
    expect(thrownForOther('repository/onnx-file.js', `readOnnxFile('${path}')`)).toMatchObject(
      refused('model.onnx'),
    )
    const session = { path, providers: ['cpu'], deviceId: 0, intraOpThreads: 1, graphOptimization: 'all' }
    expect(
      thrownForOther('backends/onnxruntime/ort-session.js', `openOrtSession(${JSON.stringify(session)})`),
    ).toMatchObject({
      code: 'GANTRY_ENVIRONMENT',
    })
  })

  it('its labels', () => {
    const path = join(repository('labels.txt', 0), 'red/labels.txt')
    expect(thrownForOther('repository/labels.js', `readLabelsFile('${path}')`)).toMatchObject(
      refused('labels.txt'),
    )
  })
})
