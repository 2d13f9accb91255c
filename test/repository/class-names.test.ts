import { describe, expect, it } from 'vitest'
import { parseClassNames } from '../../src/repository/class-names.js'

describe('R66: parseClassNames', () => {
  it.each([
    // JSON
    ['{"0": "h\\u00e9lmet", "1": "t\\tab", "2": "p"}', ['hélmet', 't\tab', 'p']],
    ['["\\ud83d\\ude00", "a\\/b", "c\\\\d", "e\\"f"]', ['😀', 'a/b', 'c\\d', 'e"f']],
    ['{"names": ["a", "b"], "nc": 2}', ['a', 'b']],
    ['{"id2label": {"0": "a", "1": "b"}}', ['a', 'b']],
    ['{"helmet": 0, "head": 1}', ['helmet', 'head']],
    ['[{"id": 1, "name": "helmet"}, {"id": 3, "name": "head"}]', [undefined, 'helmet', undefined, 'head']],
    ['[{"name": "helmet"}, {"name": "head"}]', ['helmet', 'head']],
    ['{"0": {"name": "helmet"}, "1": {"name": "head"}}', ['helmet', 'head']],
    ['["a", 3, null]', ['a', '3', '']],
    ['"{\\"0\\": \\"a\\", \\"1\\": \\"b\\"}"', ['a', 'b']],
    // Python
    ["{1: 'helmet', 2: 'head', 3: 'person'}", [undefined, 'helmet', 'head', 'person']],
    ["{2: 'c', 0: 'a', 1: 'b'}", ['a', 'b', 'c']],
    ["{0: 'h\\xe9lmet', 1: '\\U0001f600', 2: 'a\\'b', 3: '\\h'}", ['hélmet', '😀', "a'b", '\\h']],
    [`{0: "it's", 1: 'a, b: {c}'}`, ["it's", 'a, b: {c}']],
    ["[u'a', r'b\\n', b'caf\\xc3\\xa9']", ['a', 'b\\n', 'café']],
    ["('a', 'b',)", ['a', 'b']],
    ["[(0, 'a'), (1, 'b')]", ['a', 'b']],
    ["OrderedDict([(0, 'a'), (1, 'b')])", ['a', 'b']],
    ["OrderedDict({0: 'a', 1: 'b'})", ['a', 'b']],
    ["dict_values(['a', 'b'])", ['a', 'b']],
    ["array(['a', 'b'], dtype='<U6')", ['a', 'b']],
    ["{0: 'a', 0: 'a'}", ['a']],
    // YAML
    ['0: helmet\n1: head\n2: person', ['helmet', 'head', 'person']],
    ['0: helmet\r\n1: "h\\u00e9ad"\r\n', ['helmet', 'héad']],
    ['# classes\nnames:\n  0: helmet  \n  1: hard hat\nnc: 2\n', ['helmet', 'hard hat']],
    ['names:\n- helmet\n- head\n', ['helmet', 'head']],
    ['nc: 2\nnames: [helmet, head]\n', ['helmet', 'head']],
    ["{0: helmet, 1: hard hat, 2: it's}", ['helmet', 'hard hat', "it's"]],
    ["{0: 'it''s', 1: ''}", ["it's", '']],
    // Lines and lists
    ['helmet\nhead\nhard hat', ['helmet', 'head', 'hard hat']],
    ['0 helmet\n1 head', ['helmet', 'head']],
    ['2 wheeler\n4 wheeler', ['2 wheeler', '4 wheeler']],
    ['helmet: 0\nhead: 1', ['helmet', 'head']],
    ['helmet,head,person', ['helmet', 'head', 'person']],
    [' helmet, hard hat , person,', ['helmet', 'hard hat', 'person']],
    ["'a', 'b,c'", ['a', 'b,c']],
    ['helmet;head', ['helmet', 'head']],
    ['0: helmet, 1: head', ['helmet', 'head']],
    ['0=helmet;1=head', ['helmet', 'head']],
    ['hard hat', ['hard hat']],
    ['\uFEFFhelmet,head\0', ['helmet', 'head']],
  ])('reads %j', (text, names) => {
    expect(Array.from(parseClassNames(text), (name) => name)).toEqual(names)
  })

  it.each([
    ['', 'nothing in it'],
    ['17', 'it is a number'],
    ["{0: 'a', 1: 'b'", 'do not close'],
    ["{0: 'a' 1: 'b'}", 'do not close'],
    ["{0: 'a', 'b'}", 'do not close'],
    ["{'a', 'b'}", 'a set'],
    ["{0: 'a', 0: 'b'}", 'number 0 twice'],
    ['0: a\n0: b', 'number 0 twice'],
    ["{70000: 'a'}", 'number 70000'],
    ["{0: ['a', 'b']}", 'for number 0 is no name'],
    ["{'a': 'b'}", '"a" is neither'],
    ["{-1: 'a'}", '"-1" is neither'],
    [`${'['.repeat(5_000)}`, 'do not close'],
  ])('says why it does not understand %j', (text, why) => {
    expect(parseClassNames(text)).toContain(why)
  })
})
