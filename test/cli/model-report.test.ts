import { expect, it } from 'vitest'
import { checkModel } from '../../src/cli/checks/model-check.js'
import { readableReport } from '../../src/cli/model-report.js'
import { inspectModel } from '../../src/tools/model-catalog.js'
import { addModel } from '../support/onnx-models.js'
import { channelHeads, idHeads } from '../support/telling-models.js'
import { tempDir } from '../support/temp-dir.js'

function repositoryWith(onnx: Uint8Array, labels: string): string {
  const repository = tempDir()
  addModel(repository, 'm', { onnx, labels })
  return repository
}

const check = (repository: string) => checkModel(repository, 'm', [], false)[0]!

it('shows the numbers of classes beside their names, and what is none', () => {
  const labels = '__background__\nhelmet\nN/A\nhead\n'
  const repository = repositoryWith(idHeads.torchvision([1, 3]).onnx, labels)
  const report = inspectModel(repository, 'm')
  expect(report.detector).toMatchObject({
    classesBy: 'number',
    classes: [
      { id: 0, label: '__background__', use: 'nothing' },
      { id: 1, label: 'helmet', use: 'class' },
      { id: 2, label: 'class_2', use: 'unnamed' },
      { id: 3, label: 'head', use: 'class' },
    ],
  })
  const shown = ['0 nothing (__background__)', '1 helmet', '2 class_2 (no name)', '3 head']
  expect(readableReport(report).cameras).toMatchObject({ 'class numbers': shown })
  expect(check(repository)).toMatchObject({
    state: 'ok',
    detail: expect.stringContaining(shown.join(', ')) as string,
  })
})

it('shows the columns of scores beside their names', () => {
  const repository = repositoryWith(channelHeads.yolov8(2).onnx, 'background\nhelmet\nhead\n')
  expect(readableReport(inspectModel(repository, 'm')).cameras).toMatchObject({
    'columns of scores': ['0 helmet', '1 head'],
  })
})

it('says why labels do not fit, and the setting', () => {
  const repository = repositoryWith(idHeads['end-to-end']([1, 2]).onnx, 'background\nhelmet\nhead\n')
  const { detectorError } = inspectModel(repository, 'm')
  expect(detectorError?.hint).toBe(
    'Set gantry.head_first_class to "0" if the model\'s class 1 is "helmet", or to "-1" if its class 0 is.',
  )
  expect(check(repository)).toMatchObject({ state: 'failed', fix: detectorError?.hint })
})
