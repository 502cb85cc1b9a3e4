// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {readFileSync, readdirSync} from 'node:fs';
import {test} from 'node:test';

const folder = new URL('../page/', import.meta.url),
  modules = readdirSync(folder).filter(name => name.endsWith('.js')),
  text = name => readFileSync(new URL(name, folder), 'utf8');

// exported returns the names that a module exports.
function exported(name) {
  const source = text(name),
    names = [...source.matchAll(/^export (?:async )?(?:function|const|let|class) (\w+)/gm)].map(([, one]) => one);
  for (const [, list] of source.matchAll(/export ?\{([^}]*)\}/g))
    names.push(...list.split(',').map(one => one.trim().split(' as ').at(-1)));
  for (const [statement] of source.matchAll(/^export const (?:.*,\n)+.*/gm))
    names.push(...[...statement.matchAll(/^export const (\w+)|^ {2}(\w+) =/gm)].map(([, a, b]) => a || b));
  return names;
}

// A browser shows nothing at all if one name is missing.
test('each module exports what others import of it', () => {
  for (const name of modules.filter(one => one !== 'preact.js'))
    for (const [, list, from] of text(name).matchAll(/^import \{([^}]*)\} from '\.\/([\w-]+\.js)'/gm)) {
      const there = exported(from);
      for (const one of list.split(',').map(one => one.trim().split(' as ')[0]))
        if (one) assert.ok(there.includes(one), `${name} imports ${one}, which ${from} does not export`);
    }
});

test('each text has one key', () => {
  const keys = modules.filter(name => name.startsWith('texts')).flatMap(name => [...text(name).matchAll(/^ {2}(\w+):/gm)].map(([, key]) => key));
  assert.deepEqual(
    keys.filter((key, i) => keys.indexOf(key) !== i),
    [],
  );
});
