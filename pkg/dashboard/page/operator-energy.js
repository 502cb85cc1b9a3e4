// SPDX-License-Identifier: Apache-2.0
// The hosts that sleep: how many, the demand of the last day, the modes, the plan, and why each host is on or off.
import {t} from './texts.js';
import {DAY, iso, readable, seconds} from './time.js';
import {dayLine} from './operator-day.js';
import {amount, at, host, list, modeNames, orderButton, part, sinceText} from './operator-parts.js';
import {facts, h, named, table, together} from './view.js';

// questions are the questions of this page, as far as the user may ask them.
export function questions({at: now, may}) {
  const all = {
    energy: {request: {path: 'v1/energy'}, follows: true},
    plan: may('energy:get_plan') && {request: {path: 'v1/energy/plan'}, follows: true},
    demand: may('energy:get_audit') && {
      of: 'the last day',
      request: {path: 'v1/energy/demand', query: {from: iso(now - DAY)}},
      every: 60000,
    },
    energyHosts: may('energy:list_hosts') && {request: {path: 'v1/energy/hosts', list: 'hosts', most: 5000}, follows: true},
  };
  return Object.fromEntries(Object.entries(all).filter(([, wanted]) => wanted));
}

export function view(state, send) {
  const general = part(state, 'energy', found => overview(state, send, found));
  if (state.refused.energy && !state.answers.energy) return general; // there is no controller, and nothing else either
  const known = state.answers.energy?.value;
  return together(
    general,
    state.asked.demand && part(state, 'demand', ({demand}) => dayLine(demand, state.at)),
    known && modes(state, send, known),
    state.asked.plan && part(state, 'plan', found => plan(state, send, found)),
    state.asked.energyHosts && part(state, 'energyHosts', found => hosts(state, send, found)),
  );
}

const phases = ['awake', 'draining', 'stopping', 'asleep', 'waking', 'failed'];

function overview(state, send, found) {
  return together(
    warnings(state, found),
    h(
      'section',
      {class: 'cards', 'aria-label': t('hosts')},
      phases.map(phase =>
        h('div', {key: phase, class: 'card'}, h('h2', {}, t(`phase_${phase}`)), h('p', {class: 'big'}, String(found.phases?.[phase] || 0))),
      ),
      h(
        'div',
        {key: 'saved', class: 'card'},
        h('h2', {}, t('saved')),
        h('p', {class: 'big'}, `${amount(found.savings?.kwh)} kWh`),
        h('p', {class: 'soft'}, t('savedHours', {hours: amount(found.savings?.host_hours)})),
      ),
    ),
    facts([
      [t('measured'), found.measured_at ? at(found.measured_at) : null],
      [t('controller'), found.controller],
      [t('agents'), found.agents?.length ? agents(found.agents) : t('noAgents')],
    ]),
    state.may('energy:update') ? switches(send, found) : null,
  );
}

// warnings are what keeps all hosts on, and the alarms.
const warnings = (state, found) =>
  together(
    found.stopped ? h('p', {class: 'box bad'}, t('energyStopped', {by: found.stopped.by, reason: found.stopped.reason || '–'})) : null,
    found.breaker ? h('p', {class: 'box bad'}, t('breakerOpen', {count: found.failed_boots}), ' ', named(readable(found.breaker.reason || ''))) : null,
    found.halt && !found.stopped ? h('p', {class: 'box'}, named(readable(found.halt))) : null,
    found.stale ? h('p', {class: 'box'}, named(readable(found.stale))) : null,
    (found.alarms || []).map(({kind, host: name, text}) =>
      h('p', {key: `${kind} ${name}`, class: 'box bad'}, name ? [host(state, name), ': '] : null, named(readable(text))),
    ),
  );

// canSwitch reports whether an agent can switch a host. Without one there is nothing to switch off, or to stop.
const canSwitch = found => (found.agents || []).some(({hosts: count}) => count > 0);

const agents = list =>
  list.flatMap(({name, hosts: count, lost}, i) => [i > 0 ? ', ' : null, named(name), ` (${t('countHosts', {count})}${lost ? `, ${t('lost')}` : ''})`]);

const change = body => ({method: 'PATCH', path: 'v1/energy', body: {reason: t('fromPage'), ...body}});

// switches are the kill switch and the breaker, which can be taken back also without an agent.
function switches(send, found) {
  const {stopped, breaker} = found;
  if (!stopped && !breaker && !canSwitch(found)) return null;
  return h(
    'div',
    {class: 'actions start'},
    stopped
      ? orderButton(
          send,
          t('resumeSwitching'),
          {title: t('resumeTitle'), lines: [t('resumeText')], yes: t('resumeSwitching'), request: change({stop: false}), takes: ['reason'], said: t('switchingResumed')},
          {class: 'main', id: 'kill-switch'},
        )
      : canSwitch(found)
        ? orderButton(
            send,
            t('stopSwitching'),
            {title: t('stopTitle'), lines: [t('stopText')], yes: t('stopSwitching'), danger: true, request: change({stop: true}), takes: ['reason'], said: t('switchingStopped')},
            {class: 'danger', id: 'kill-switch'},
          )
        : null,
    breaker
      ? orderButton(send, t('resetBreaker'), {
          title: t('resetBreaker'),
          lines: [t('resetBreakerText')],
          yes: t('resetBreaker'),
          request: change({reset_breaker: true}),
          takes: ['reason'],
          said: t('breakerReset'),
        })
      : null,
  );
}

// modes tells what each mode does, which one applies, and changes it.
function modes(state, send, found) {
  const own = Object.entries({...found.aggregates, ...found.hosts});
  return h(
    'section',
    {class: 'card', key: 'modes'},
    h('h2', {}, t('mode')),
    h('p', {class: 'soft'}, t('modesText')),
    h(
      'ul',
      {class: 'modes'},
      modeNames.map(mode => modeView(state, send, found, mode)),
    ),
    h(
      'p',
      {},
      found.mode === null ? t('modeConfigured') : t('modeSet', {mode: t(`mode_${found.configured_mode}`)}),
      ' ',
      found.mode !== null && state.may('energy:update')
        ? orderButton(send, t('useConfigured'), modeOrder(null, found.configured_mode), {class: 'choice', id: 'mode-configured'})
        : null,
    ),
    own.length
      ? h('p', {}, t('ownModes'), ' ', own.flatMap(([name, mode], i) => [i > 0 ? ', ' : null, named(name), ` (${t(`mode_${mode}`)})`]))
      : null,
  );
}

const modeOrder = (mode, becomes) => ({
  title: t('modeTitle', {mode: t(`mode_${becomes}`)}),
  lines: [t(`modeDoes_${becomes}`)],
  yes: t('modeTake', {mode: t(`mode_${becomes}`)}),
  danger: becomes === 'auto',
  request: change({mode}),
  takes: ['reason'],
  said: t('modeChanged', {mode: t(`mode_${becomes}`)}),
});

function modeView(state, send, found, mode) {
  const current = found.effective_mode === mode,
    useful = mode !== 'auto' || canSwitch(found);
  return h(
    'li',
    {key: mode, 'aria-current': current ? 'true' : null},
    h('h3', {}, t(`mode_${mode}`), current ? [' ', h('span', {class: 'badge active'}, t('modeNow'))] : null),
    h('p', {}, t(`modeDoes_${mode}`), mode === 'auto' && found.effective_mode === 'recommend' ? ` ${wouldDo(state)}` : null),
    !current && useful && state.may('energy:update')
      ? orderButton(send, t('modeTake', {mode: t(`mode_${mode}`)}), modeOrder(mode, mode), {class: 'choice', id: `mode-${mode}`})
      : null,
  );
}

// wouldDo tells what automatic switching would do with the present plan.
function wouldDo({answers}) {
  const planned = answers.plan?.value.switches;
  if (!planned) return '';
  const on = planned.filter(one => one.to === 'on').length;
  return planned.length ? t('modeWould', {on, off: planned.length - on}) : t('modeWouldNothing');
}

function plan(state, send, found) {
  return h(
    'section',
    {class: 'card'},
    h('h2', {}, t('plan')),
    h('p', {class: 'soft'}, at(found.at)),
    h('p', {}, t('planText', {required: found.required, spare: found.spare, on: found.on})),
    found.short ? h('p', {class: 'box'}, named(readable(found.short))) : null,
    table(
      t('plan'),
      [t('host'), t('switchTo'), t('reason')],
      [
        ...found.switches.map(one => ({key: one.host, cells: [host(state, one.host), t(`to_${one.to}`), named(readable(one.reason))]})),
        ...found.kept.map(one => ({key: one.host, cells: [host(state, one.host), t('kept'), named(readable(one.reason))]})),
      ],
      t('nothingPlanned'),
    ),
    found.approved ? h('p', {class: 'box good'}, t('approvedBy', {by: found.approved.by, at: at(found.approved.at)})) : null,
    state.may('energy:approve') && found.switches.length && !found.approved && state.answers.energy?.value.effective_mode === 'recommend'
      ? orderButton(
          send,
          t('approve'),
          {
            title: t('approve'),
            lines: [t('approveText', {hosts: found.switches.map(one => `${one.host} → ${t(`to_${one.to}`)}`).join(', ')})],
            yes: t('approve'),
            request: {method: 'POST', path: 'v1/energy/plan', body: {approve: found.id}},
            said: t('approved'),
          },
          {class: 'main', id: 'approve'},
        )
      : null,
  );
}

// reasons are why a host is on or off.
const reasons = one => (one.explanation || [one.reason]).filter(Boolean);

function hosts(state, send, found) {
  const explained = found.some(one => reasons(one).length > 0);
  return together(
    h('h2', {class: 'above'}, t('hosts')),
    list(state, send, {
      name: 'energyHosts',
      caption: t('hosts'),
      heads: [t('host'), t('phase'), t('mode'), t('watts'), ...(explained ? [t('why')] : [])],
      rows: found,
      row: one => ({
        key: one.name,
        cells: [
          host(state, one.name),
          together(t(`phase_${one.phase}`), sinceText(one.since)),
          t(`mode_${one.effective_mode}`),
          one.read_at ? amount(one.watts) : t('unknown'),
          ...(explained ? [h('ul', {class: 'plain-list'}, reasons(one).map((text, i) => h('li', {key: i}, named(readable(text)))))] : []),
        ],
      }),
      empty: t('noHosts'),
    }),
  );
}
