// SPDX-License-Identifier: Apache-2.0
// What the calendar shows beside its picture.
import assert from 'node:assert/strict';
import {afterEach, test} from 'node:test';
import {calendarView} from '../page/calendar-view.js';
import {HEAD} from '../page/places.js';
import {t} from '../page/texts.js';
import {secondZone, setSecondZone, setZone} from '../page/zones.js';
import {byID, parts, words} from './elements.js';
import {World} from './world.js';

afterEach(() => {
  setZone('local');
  setSecondZone('');
});

const app = rules => ({may: rule => rules.includes(rule), project: id => id});

// shown returns the view of a calendar with its hosts, and the events that its elements send.
function shown(rules = []) {
  const w = new World(),
    sent = [];
  w.settle();
  w.state = {...w.state, may: Object.fromEntries(rules.map(rule => [rule, true]))};
  return {w, sent, view: () => calendarView(w.state, event => sent.push(event), app(rules))};
}

test('the tools have the zones of the second axis, and a choice draws the picture anew', () => {
  setZone('Europe/Paris');
  const {sent, view} = shown();
  byID(view(), 'second-zone').props.onchange({currentTarget: {value: 'Asia/Tokyo'}});
  assert.deepEqual(sent, [{type: 'zoned'}]);
  assert.equal(secondZone(), 'Asia/Tokyo');
  assert.equal(byID(view(), 'second-zone').props.value, 'Asia/Tokyo');
});

const operator = ['hosts:get_instances', 'reservations:maintain', 'reservations:create'],
  nameOfB = {px: 60, py: HEAD + 45};

// pressName presses the name of the second host.
function pressName(w) {
  w.send({type: 'pressed', ...nameOfB, button: 0});
  w.send({type: 'released', ...nameOfB, button: 0});
}

test('the name of a host has its facts and, for operators, the way to its page and maintenance of it', () => {
  const {w, sent, view} = shown(operator);
  pressName(w);
  w.send({type: 'hovered', px: 500, py: HEAD + 10});
  w.send({type: 'left'});
  const menu = byID(view(), 'host-menu');
  assert.ok(words(menu).startsWith('b'), 'the pointer moves to the menu, and does not take it away');
  assert.ok(parts(menu).some(one => one.props.href === '#/operator/hosts/b'));
  parts(menu)
    .find(one => words(one) === t('planMaintenance') && one.props.onclick)
    .props.onclick();
  w.send(sent[0]);
  const {fields} = w.state.form;
  assert.deepEqual([fields.kind, fields.maintained], ['maintenance', 'b']);
  assert.equal(byID(view(), 'host-menu'), undefined);
});

test('who may do nothing with a host sees its facts alone', () => {
  const {w, view} = shown();
  pressName(w);
  const menu = byID(view(), 'host-menu');
  assert.ok(words(menu).includes('b') && !words(menu).includes(t('planMaintenance')) && !words(menu).includes(t('hostPage')));
});

test('the menu of a host opens with the keyboard, and Escape leads back to the picture', () => {
  const {w, sent, view} = shown(operator);
  w.send({type: 'key', key: 'h'});
  assert.deepEqual(w.done.at(-1), {do: 'focus', id: 'host-menu'});
  byID(view(), 'host-menu').props.onkeydown({key: 'Escape'});
  w.send(sent[0]);
  assert.equal(byID(view(), 'host-menu'), undefined);
  assert.deepEqual(w.done.at(-1), {do: 'focusPicture'});
});

test('the table has the same for each host', () => {
  const {w, sent, view} = shown(operator);
  w.send({type: 'tabled'});
  const buttons = parts(view()).filter(one => one.props.class === 'plan-maintenance');
  assert.equal(buttons.length, 4);
  buttons[2].props.onclick();
  assert.deepEqual(sent, [{type: 'maintained', host: 'c'}]);
});

test('the calendar has one head of the first level, with a form, as a table, with the help and on paper', () => {
  const {w, view} = shown(operator);
  for (const event of [{type: 'booked'}, {type: 'tabled'}, {type: 'helped'}, {type: 'printing', on: true}, {type: 'form.close'}]) {
    w.send(event);
    assert.equal(parts(view()).filter(one => one.type === 'h1').length, 1, event.type);
  }
});

test("the filter's editor, which asks for the values of all properties, is made when somebody opens it", () => {
  const {w, sent, view} = shown();
  const box = () => parts(view()).find(one => one.props.class === 'filter-box');
  const editor = () => parts(box()).find(one => one.props.id === 'calendar-filter');
  assert.equal(editor(), undefined);
  box().props.ontoggle({currentTarget: {open: true}});
  w.send(sent[0]);
  assert.ok(editor());
});

test('a filter of the address is shown with its editor', () => {
  const {w, view} = shown();
  w.send({type: 'filtered', filter: '["=", "$gpu", "a100"]'});
  assert.ok(words(byID(view(), 'calendar-filter')).startsWith('gpu = a100'));
});

test('a calendar that scrolls makes none of its tools, its filter and its legend anew', () => {
  const {w} = shown(['reservations:create']),
    send = () => {},
    view = () => calendarView(w.state, send, app(['reservations:create']));
  const pieces = all => [byID(all, 'today'), byID(all, 'second-zone'), ...['filter-box', 'key mine'].map(name => parts(all).find(one => one.props.class === name))];
  const before = pieces(view());
  w.send({type: 'scrolled', scroll: 7});
  pieces(view()).forEach((piece, i) => assert.ok(piece && piece === before[i], `piece ${i}`));
});
