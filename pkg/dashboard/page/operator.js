// SPDX-License-Identifier: Apache-2.0
// The pages of operators.
import {button, facts, field, fill, h, named, problem, select, table, toast} from './dom.js';
import {t} from './texts.js';
import {all, get, patch, post} from './client.js';
import {DAY, ago, iso, now, seconds, whenExactly} from './time.js';

// pages are the pages with the rule that shows them.
export const pages = [
  ['usage', 'usage:get_all_projects', usage],
  ['energy', 'energy:get', energy],
  ['decisions', 'decisions:get', decisions],
  ['preemptible', 'preemptible:list', preemptible],
  ['queue', 'besteffort:list', queue],
  ['images', 'images:list', images],
  ['doctor', 'doctor:get', doctor],
];

// show shows the page of a name.
export function show(main, app, name) {
  const allowed = pages.filter(([, rule]) => app.may(rule));
  const [chosen, , build] = allowed.find(([one]) => one === name) || allowed[0] || [];
  const place = h('div', {});
  fill(
    main,
    h(
      'div',
      {class: 'page'},
      h('h1', {}, t('operations')),
      h(
        'nav',
        {class: 'tabs', 'aria-label': t('operations')},
        allowed.map(([one]) => h('a', {href: `#/operator/${one}`, 'aria-current': one === chosen ? 'page' : null}, t(`page_${one}`))),
      ),
      place,
    ),
  );
  if (build) build(place, app);
}

// into fills a place with what a promise returns, or with its error.
const into = (place, promise, build) =>
  promise.then(
    found => fill(place, build(found)),
    error => fill(place, error.status === 404 || error.status === 409 ? h('p', {class: 'box'}, error.message) : problem(error)),
  );

const hours = value => (value === undefined || value === null ? '–' : value.toLocaleString(undefined, {maximumFractionDigits: 1}));
const at = time => (time ? whenExactly(seconds(time)) : '–');

function usage(place, app) {
  const result = h('div', {}, h('p', {class: 'soft'}, t('loading')));
  let days = 7,
    by = 'project';
  function read() {
    const query = {start: iso(now() - days * DAY), end: iso(now()), by};
    const csv = `../v1/usage?${new URLSearchParams({...query, format: 'csv'})}`;
    into(result, get('v1/usage', query), found => [
      bar(found.total),
      table(
        t('page_usage'),
        [t(by), t('reserved'), t('used'), ...(by === 'host' ? [t('maintenance'), t('idle'), t('asleep')] : [])],
        found.rows.map(row => [
          by === 'project' ? app.project(row.project_id) : named(row.host),
          hours(row.reserved),
          hours(row.used),
          ...(by === 'host' ? [hours(row.maintenance), hours(row.idle), hours(row.asleep)] : []),
        ]),
        t('noUse'),
      ),
      h('p', {}, h('a', {href: csv, download: 'usage.csv', class: 'button', id: 'csv'}, t('csv'))),
    ]);
  }
  fill(
    place,
    h(
      'div',
      {class: 'line'},
      field(
        t('lastTime'),
        select(
          [
            ['1', t('lastDay')],
            ['7', t('lastWeek')],
            ['30', t('lastMonth')],
          ],
          '7',
          value => {
            days = Number(value);
            read();
          },
        ),
      ),
      field(
        t('byWhat'),
        select(
          [
            ['project', t('project')],
            ['host', t('host')],
          ],
          'project',
          value => {
            by = value;
            read();
          },
        ),
      ),
    ),
    result,
  );
  read();
}

// bar shows how the time of the hosts was used.
function bar(total) {
  const whole = total.capacity || total.reserved + (total.maintenance || 0) + (total.idle || 0) + (total.asleep || 0) || 1;
  const parts = [
    ['used', total.used],
    ['unused', total.reserved - total.used],
    ['maintenance', total.maintenance || 0],
    ['asleep', total.asleep || 0],
    ['idle', total.idle || 0],
  ];
  const text = parts.map(([name, value]) => `${t(name)} ${Math.round((100 * value) / whole)} %`).join(', ');
  const svg = (name, attributes, ...children) => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  let from = 0;
  return h(
    'section',
    {class: 'card'},
    h('h2', {}, t('hostHours')),
    svg(
      'svg',
      {viewBox: '0 0 100 6', preserveAspectRatio: 'none', class: 'bar', role: 'img', 'aria-label': text},
      ...parts.map(([name, value]) => {
        const width = (100 * value) / whole;
        const part = svg('rect', {x: from, y: 0, width: Math.max(0, width), height: 6, class: `part-${name}`});
        from += width;
        return part;
      }),
    ),
    h(
      'ul',
      {class: 'bar-legend'},
      parts.map(([name, value]) =>
        h('li', {}, h('span', {class: `key part-${name}`, 'aria-hidden': 'true'}), `${t(name)}: ${hours(value)} h`),
      ),
    ),
  );
}

function energy(place, app) {
  const state = h('div', {}, h('p', {class: 'soft'}, t('loading'))),
    plan = h('div', {}),
    list = h('div', {});
  fill(place, state, plan, list);
  const read = () => {
    into(state, get('v1/energy'), found => [
      found.stopped ? h('p', {class: 'box bad'}, t('energyStopped', {by: found.stopped.by, reason: found.stopped.reason || '–'})) : null,
      found.halt && !found.stopped ? h('p', {class: 'box'}, named(found.halt)) : null,
      found.stale ? h('p', {class: 'box'}, named(found.stale)) : null,
      h(
        'section',
        {class: 'cards'},
        ['awake', 'draining', 'stopping', 'asleep', 'waking', 'failed']
          .map(phase => [phase, found.phases?.[phase] || 0])
          .map(([phase, count]) => h('div', {class: 'card'}, h('h2', {}, t(`phase_${phase}`)), h('p', {class: 'big'}, String(count)))),
        h(
          'div',
          {class: 'card'},
          h('h2', {}, t('saved')),
          h('p', {class: 'big'}, `${hours(found.savings?.kwh)} kWh`),
          h('p', {class: 'soft'}, t('savedHours', {hours: hours(found.savings?.host_hours)})),
        ),
      ),
      facts([
        [t('mode'), t(`mode_${found.effective_mode}`)],
        [t('measured'), at(found.measured_at)],
        [t('controller'), found.controller],
      ]),
      ...(found.alarms || []).map(alarm => h('p', {class: 'box bad'}, alarm.host ? [named(alarm.host), ': '] : null, named(alarm.text))),
      app.may('energy:update')
        ? h(
            'div',
            {class: 'actions start'},
            button(t(found.stopped ? 'resumeSwitching' : 'stopSwitching'), () => kill(!found.stopped), {
              class: found.stopped ? 'main' : 'danger',
              id: 'kill-switch',
            }),
          )
        : null,
    ]);
    into(plan, get('v1/energy/plan'), found =>
      h(
        'section',
        {class: 'card'},
        h('h2', {}, t('plan')),
        h('p', {}, t('planText', {required: found.required, spare: found.spare, on: found.on})),
        found.short ? h('p', {class: 'box'}, named(found.short)) : null,
        table(
          t('plan'),
          [t('host'), t('switchTo'), t('reason')],
          [
            ...found.switches.map(one => [named(one.host), t(`to_${one.to}`), named(one.reason)]),
            ...found.kept.map(one => [named(one.host), t('kept'), named(one.reason)]),
          ],
          t('nothingPlanned'),
        ),
        app.may('energy:approve') && found.switches.length && !found.approved
          ? button(
              t('approve'),
              () =>
                post('v1/energy/plan', {approve: found.id}).then(
                  () => {
                    toast(t('approved'));
                    read();
                  },
                  error => toast(error.message, 'bad'),
                ),
              {class: 'main'},
            )
          : null,
      ),
    );
    into(list, all('v1/energy/hosts', {limit: 100}, 'hosts', 1000), found =>
      table(
        t('hosts'),
        [t('host'), t('phase'), t('watts'), t('why')],
        found.map(one => [
          named(one.name),
          [t(`phase_${one.phase}`), h('div', {class: 'soft'}, one.since ? ago(seconds(one.since)) : '')],
          !one.read_at ? t('unknown') : hours(one.watts),
          h(
            'ul',
            {class: 'plain-list'},
            (one.explanation || [one.reason]).filter(Boolean).map(text => h('li', {}, named(text))),
          ),
        ]),
        t('noHosts'),
      ),
    );
  };
  const kill = stop =>
    patch('v1/energy', {stop, reason: t('fromPage')}).then(
      () => {
        toast(t(stop ? 'switchingStopped' : 'switchingResumed'));
        read();
      },
      error => toast(error.message, 'bad'),
    );
  read();
}

function decisions(place) {
  const id = h('input', {
      type: 'text',
      name: 'server',
      required: true,
      autocomplete: 'off',
      placeholder: '0d5cbe0f-98c7-4a91-9d63-2d56c1b6f00a',
      class: 'code',
    }),
    result = h('div', {'aria-live': 'polite'});
  fill(
    place,
    h('p', {}, t('decisionsText')),
    h(
      'form',
      {
        class: 'line',
        submit: event => {
          event.preventDefault();
          into(result, get(`v1/decisions/${encodeURIComponent(id.value.trim())}`), ({decisions}) => decisions.map(decision));
        },
      },
      field(t('serverOrRequest'), id),
      h('button', {class: 'main'}, t('explain')),
    ),
    result,
  );
}

const decision = one =>
  h(
    'section',
    {class: 'card'},
    h('h2', {}, at(one.at)),
    one.reason ? h('p', {class: 'box bad'}, named(one.reason)) : null,
    facts([
      [t('request'), h('code', {}, one.request_id || '–')],
      [
        t('placed'),
        one.placements?.length
          ? h(
              'ul',
              {class: 'plain-list'},
              one.placements.map(p => h('li', {}, h('code', {}, p.instance), ' → ', named(p.host || '–'))),
            )
          : null,
      ],
      [t('considered'), one.considered === undefined ? null : String(one.considered)],
      [t('left'), one.filters?.map(f => `${f.filter}: ${f.left}`).join(' → ')],
      [t('reservation'), one.reservation_id ? h('a', {href: `#/reservation/${one.reservation_id}`}, one.reservation_id) : null],
    ]),
    one.refused?.length
      ? h(
          'details',
          {},
          h('summary', {}, t('refusedHosts', {count: one.refused.length})),
          table(
            t('refused'),
            [t('host'), t('filter'), t('reason')],
            one.refused.map(r => [named(r.host), r.filter, named(r.reason)]),
            '',
          ),
        )
      : null,
    one.ranked?.length
      ? h(
          'details',
          {},
          h('summary', {}, t('ranked')),
          table(
            t('ranked'),
            [t('host'), t('weight'), t('parts')],
            one.ranked.map(r => [
              named(r.host),
              hours(r.weight),
              Object.entries(r.parts || {})
                .map(([name, value]) => `${name} ${hours(value)}`)
                .join(', '),
            ]),
            '',
          ),
        )
      : null,
  );

function preemptible(place, app) {
  const list = h('div', {}, h('p', {class: 'soft'}, t('loading'))),
    costs = h('div', {'aria-live': 'polite'});
  const vcpus = h('input', {type: 'number', min: '1', value: '2'}),
    memory = h('input', {type: 'number', min: '1', value: '4096'});
  fill(
    place,
    list,
    h(
      'section',
      {class: 'card'},
      h('h2', {}, t('costTitle')),
      h(
        'form',
        {
          class: 'line',
          submit: event => {
            event.preventDefault();
            into(costs, get('v1/preemptible/cost', {vcpus: vcpus.value, memory_mb: memory.value}), found => [
              found.reason ? h('p', {class: 'box'}, named(found.reason)) : null,
              table(
                t('costTitle'),
                [t('host'), t('cost'), t('victims'), t('reason')],
                found.hosts.map(one => [
                  named(one.host),
                  one.room ? t('hasRoom') : one.reason ? '–' : `${hours(one.cost)} ${one.unit}`,
                  one.victims.map(v => named(v.name)),
                  one.reason ? named(one.reason) : '',
                ]),
                t('noHosts'),
              ),
            ]);
          },
        },
        field(t('vcpus'), vcpus),
        field(t('memoryMB'), memory),
        h('button', {class: 'main'}, t('ask')),
      ),
      costs,
    ),
  );
  into(list, get('v1/preemptible', {limit: 500}), ({instances}) =>
    table(
      t('page_preemptible'),
      [t('server'), t('host'), t('project'), t('cost'), t('since'), t('reason')],
      instances.map(one => [
        named(one.name),
        named(one.host),
        app.project(one.project_id),
        one.cost === null ? '–' : `${hours(one.cost)} ${one.unit}`,
        at(one.launched_at),
        one.evictable ? t('evictable') : named(one.reason || ''),
      ]),
      t('noPreemptible'),
    ),
  );
}

function queue(place, app) {
  into(
    fill(place, h('p', {class: 'soft'}, t('loading'))),
    all('v1/besteffort', app.may('reservations:list_all') ? {all_projects: true} : {}, 'besteffort', 1000),
    found =>
      table(
        t('page_queue'),
        [t('name'), t('status'), t('position'), t('expected'), t('servers')],
        found.map(one => [
          named(one.name),
          t(`queue_${one.status}`),
          one.position ? String(one.position) : '–',
          one.expected_start ? `${at(one.expected_start)} (${ago(seconds(one.expected_start))})` : '–',
          h(
            'ul',
            {class: 'plain-list'},
            one.vms.map(vm =>
              h('li', {}, t(`queue_${vm.status}`), vm.host ? [' · ', named(vm.host)] : '', vm.reason ? [' · ', named(vm.reason)] : ''),
            ),
          ),
        ]),
        t('emptyQueue'),
      ),
  );
}

function images(place) {
  into(fill(place, h('p', {class: 'soft'}, t('loading'))), get('v1/images'), found =>
    table(
      t('page_images'),
      [t('image'), t('host'), t('state'), t('time'), t('detail')],
      found.images.map(one => [
        named(one.name || one.id || one.image || '–'),
        named(one.host),
        t(`image_${one.state}`),
        one.start ? at(one.start) : '–',
        one.detail ? named(one.detail) : '',
      ]),
      t('noImages'),
    ),
  );
}

function doctor(place, app) {
  const result = h('div', {'aria-live': 'polite'});
  const read = (call, fixing) =>
    into(fill(result, h('p', {class: 'soft'}, t('examining'))), call, found => [
      found.untrusted ? h('p', {class: 'box bad'}, named(found.untrusted)) : null,
      found.findings.length === 0
        ? h('p', {class: 'box good'}, t('healthy'))
        : table(
            t('page_doctor'),
            [t('finding'), t('subject'), t('message'), t('remedy'), fixing ? t('outcome') : t('fixable')],
            found.findings.map(one => [
              h('code', {}, one.kind),
              named(one.subject),
              named(one.message),
              named(one.remedy || ''),
              fixing ? [one.outcome || '–', one.detail ? [': ', named(one.detail)] : ''] : t(one.fixable ? 'yes' : 'no'),
            ]),
            '',
          ),
      app.may('doctor:fix') && found.findings.some(one => one.fixable) && !fixing
        ? button(t('fixAll'), () => read(post('v1/doctor', {}), true), {class: 'main'})
        : null,
    ]);
  fill(
    place,
    h('p', {}, t('doctorText')),
    button(t('examine'), () => read(get('v1/doctor'), false), {id: 'examine'}),
    result,
  );
  read(get('v1/doctor'), false);
}
