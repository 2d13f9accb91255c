import { describe, expect, it } from 'vitest'
import { allowedHostFault } from '../../src/config/allowed-host.js'

describe('allowedHostFault', () => {
  it.each([
    'gantry',
    'my_host',
    'gantry.example.com',
    'Gantry.Example.COM.',
    '.example.com',
    '*.example.com',
    '.local',
    'bücher.example',
    'xn--bcher-kva.example',
    '192.168.1.9',
    '::1',
    '[fe80::1]',
  ])('finds none with %j', (entry) => {
    expect(allowedHostFault(entry)).toBeUndefined()
  })

  it.each([
    ['*', 'protects nothing'],
    ['.', 'host name'],
    ['*.', 'host name'],
    ['', 'host name'],
    ['https://gantry.example.com', 'is a URL; write the name alone: "gantry.example.com"'],
    ['http://gantry.example.com:8000/', 'is a URL; write the name alone: "gantry.example.com"'],
    ['gantry.example.com:8000', 'names a port; write the name alone, for every port: "gantry.example.com"'],
    ['192.168.1.9:8000', 'names a port; write the name alone, for every port: "192.168.1.9"'],
    ['[fe80::1]:8000', 'names a port; write the name alone, for every port: "[fe80::1]"'],
    ['gantry.*.com', 'host name'],
    ['*gantry.com', 'host name'],
    ['gantry..com', 'host name'],
    ['gantry.example.com/path', 'host name'],
    ['a b.example', 'host name'],
    ['me@gantry.example', 'host name'],
    ['10.0.0.0/8', 'host name'],
    ['1.2', 'host name'],
    ['[fe80::1', 'host name'],
    [`${'a'.repeat(64)}.example`, 'host name'],
    [`${'abcdefg.'.repeat(40)}example`, 'host name'],
  ])('tells what is wrong with %j', (entry, fault) => {
    expect(allowedHostFault(entry)).toContain(fault)
  })
})
