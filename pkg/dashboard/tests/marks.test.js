// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {marks} from '../page/marks.js';

// sheet is a canvas that notes the boxes on it and, as a browser does, takes no negative radius.
function sheet() {
  const boxes = [];
  const c = {
    roundRect: (x, y, width, height, radius) => {
      if (radius < 0) throw new RangeError(`Radius value ${radius} is negative.`);
      boxes.push({x, y, width, height});
    },
  };
  for (const name of ['save', 'restore', 'beginPath', 'rect', 'clip', 'fill', 'stroke', 'setLineDash', 'moveTo', 'lineTo', 'strokeRect']) c[name] = () => {};
  return {c, boxes};
}

const view = {
  start: 0,
  scale: 0.01,
  label: 168,
  width: 1000,
  height: 400,
  scroll: 0,
  rows: [],
  total: 0,
  colors: {},
  windows: [{start: 3600, end: 7200}],
  offer: {start: 3600, end: 7200, hosts: ['a']},
  blocked: [{host: 'a', start: 3600, end: 7200}],
  drag: null,
  stretch: null,
  focused: false,
};

test('an offer that is there before the hosts is drawn once they are there', () => {
  const early = sheet();
  marks(early.c, view);
  assert.deepEqual(early.boxes, []);
  const late = sheet();
  marks(late.c, {...view, rows: [{host: {name: 'a', claims: []}, y: 0, height: 30}], total: 30});
  assert.equal(late.boxes.length, 3);
});
