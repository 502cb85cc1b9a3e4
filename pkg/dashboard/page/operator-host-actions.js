// SPDX-License-Identifier: Apache-2.0
// What an operator can do with a host, as far as the policy allows it.
import {t} from './texts.js';
import {modeNames, orderButton} from './operator-parts.js';
import {h} from './view.js';

// hostActions returns the section with the actions; `power` is what the energy controller knows of the host, if it does.
export function hostActions(state, send, one, power) {
  const items = [...(state.may('reservations:maintain') ? [maintenance(one)] : []), ...(state.may('hosts:update') ? [pool(send, one), order(send, one)] : [])];
  const switches = state.may('energy:order') && power?.states.length ? powerOrders(send, power) : null,
    modes = state.may('energy:update') && power ? modeOrders(send, power) : null;
  if (items.length === 0 && !switches && !modes) return null;
  return h('section', {class: 'card screen-only'}, h('h3', {}, t('actions')), h('dl', {class: 'doings'}, items), switches, modes);
}

// doing is an action with what it does.
const doing = (key, control, text) => h('div', {key}, h('dt', {}, control), h('dd', {class: 'soft'}, text));

const maintenance = ({name}) =>
  doing('maintenance', h('a', {class: 'button', id: 'maintain', href: `#/calendar?maintain=${encodeURIComponent(name)}`}, t('maintainHost')), t('maintainHostText'));

const change = ({name}, body) => ({method: 'PATCH', path: `v1/hosts/${encodeURIComponent(name)}`, body});

// pool takes a host out of the pool, which drains it of reservations, and puts it back.
function pool(send, one) {
  const [key, reservable] = one.reservable ? ['drain', false] : ['undrain', true];
  return doing(
    'pool',
    orderButton(
      send,
      t(key),
      {title: t(`${key}Title`, {name: one.name}), lines: [t(`${key}Text`)], yes: t(key), danger: !reservable, request: change(one, {reservable}), said: t(`${key}Done`, {name: one.name})},
      {id: 'pool', class: reservable ? null : 'danger'},
    ),
    t(`${key}Text`),
  );
}

// order marks a host as out of order, or takes the mark away.
function order(send, one) {
  const [key, power] = one.power === 'failed' ? ['mend', null] : ['fail', 'failed'];
  return doing(
    'order',
    orderButton(
      send,
      t(key),
      {title: t(`${key}Title`, {name: one.name}), lines: [t(`${key}Text`)], yes: t(key), danger: power !== null, request: change(one, {power}), said: t(`${key}Done`, {name: one.name})},
      {id: 'out-of-order', class: power === null ? null : 'danger'},
    ),
    t(`${key}Text`),
  );
}

// powerOrders switch a host by hand. The service says first what an order would do, or why it refuses it.
function powerOrders(send, power) {
  const actions = [power.phase === 'awake' ? 'stay' : 'on', 'off', ...(power.states.includes('standby') ? ['standby'] : []), 'test', ...(power.hold ? ['release'] : [])];
  return h(
    'div',
    {},
    h('h3', {}, t('switchByHand')),
    h('p', {class: 'soft'}, t('switchByHandText')),
    h(
      'div',
      {class: 'actions start'},
      actions.map(action =>
        orderButton(
          send,
          t(`action_${action}`),
          {
            title: t(`actionTitle_${action}`, {name: power.name}),
            lines: [],
            yes: t(`action_${action}`),
            danger: action === 'off' || action === 'standby',
            request: {method: 'POST', path: `v1/energy/hosts/${encodeURIComponent(power.name)}`, body: {action: action === 'stay' ? 'on' : action}},
            takes: action === 'release' || action === 'test' ? ['reason'] : ['reason', 'until'],
            trial: true,
            said: t('ordered'),
          },
          {key: action, id: `power-${action}`},
        ),
      ),
    ),
  );
}

// modeOrders give a host a mode of its own, which wins over that of its aggregates and that of all hosts, or take it away.
// A host that no agent can switch cannot be switched automatically.
function modeOrders(send, {name, mode: own, states}) {
  const choice = (mode, text, does) =>
    orderButton(
      send,
      text,
      {
        title: t('hostModeTitle', {name, mode: text}),
        lines: [does],
        yes: text,
        danger: mode === 'auto',
        request: {method: 'PATCH', path: 'v1/energy', body: {reason: t('fromPage'), hosts: {[name]: mode}}},
        takes: ['reason'],
        said: t('hostModeChanged', {name, mode: text}),
      },
      {key: mode || 'none', id: `mode-${mode || 'none'}`},
    );
  return h(
    'div',
    {},
    h('h3', {}, t('hostMode')),
    h('p', {class: 'soft'}, t(own ? 'hostModeOwn' : 'hostModeNone', {mode: t(`mode_${own}`)})),
    h(
      'div',
      {class: 'actions start'},
      modeNames.filter(mode => mode !== own && (mode !== 'auto' || states.length > 0)).map(mode => choice(mode, t(`mode_${mode}`), t(`modeDoes_${mode}`))),
      own ? choice(null, t('noOwnMode'), t('noOwnModeText')) : null,
    ),
  );
}
