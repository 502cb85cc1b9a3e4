// SPDX-License-Identifier: Apache-2.0
// The pages of operators. They are loaded when the first of them is opened.
import {fill} from './dom.js';
import {add} from './texts.js';
import {run} from './loop.js';
import {stream} from './stream.js';
import {texts} from './texts-operator.js';
import {allowed} from './operator-pages.js';
import {viewOf} from './operator-view.js';
import {nothing, step} from './operator-state.js';

add(texts);

// placeOf reads the address of a page: its name, and what follows.
function placeOf(app, path) {
  const [, , name, item = ''] = path,
    pages = allowed(app.may);
  return {page: pages.includes(name) ? name : pages[0] || '', item};
}

// show shows the page of an address, which is a list of words. It returns what follows the address and what ends it.
export function show(main, app, path) {
  const place = document.createElement('div'),
    ending = new AbortController(),
    options = {signal: ending.signal};
  fill(main, place);
  const part = run({
    place,
    state: nothing({...placeOf(app, path), may: app.may, names: app.projectNames()}),
    step,
    view: viewOf(),
  });
  part.send({type: 'hidden', on: document.hidden});
  part.send({type: 'begin'});
  addEventListener('projects', () => part.send({type: 'named', names: app.projectNames()}), options);
  document.addEventListener('visibilitychange', () => part.send({type: 'hidden', on: document.hidden}), options);
  const close = stream({
    calendar: () => part.send({type: 'changed'}),
    hosts: () => part.send({type: 'changed'}),
    lost: () => part.send({type: 'lost'}),
  });
  app.operator = {state: part.state, send: part.send};
  return {
    went: next => part.send({type: 'went', ...placeOf(app, next)}),
    end: () => {
      ending.abort();
      close();
      part.end();
    },
  };
}
