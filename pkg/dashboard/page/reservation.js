// SPDX-License-Identifier: Apache-2.0
// The list of reservations, and the page of one.
import {button, copied, facts, field, fill, h, named, problem, select, table, toast} from './dom.js';
import {t} from './texts.js';
import {all, get, patch, remove} from './client.js';
import {stream} from './stream.js';
import {DAY, HOUR, ago, field as timeField, iso, length, readField, readable, seconds, span, when, whenExactly} from './time.js';

const over = ['ended', 'canceled', 'failed'];

// maintenanceBadge marks maintenance; null for what is none.
const maintenanceBadge = one => (one.maintenance ? h('span', {class: 'badge'}, t('maintenance')) : null);

export const badge = status => h('span', {class: `badge ${status}`}, t(`status_${status}`));

// quoted returns a text as one word of a shell.
const quoted = text => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

// list shows the reservations of the project, or of all projects.
export function list(main, app) {
  let everything = false,
    past = false;
  const place = h('div', {});
  async function read() {
    try {
      const query = everything ? {all_projects: true} : {};
      if (past) query.status = 'pending,starting,active,ending,ended,canceled,failed';
      const found = await all('v1/reservations', query, 'reservations', 2000);
      const shown = found.filter(one => past || !over.includes(one.status));
      fill(
        place,
        table(
          t('reservations'),
          [t('name'), t('status'), t('time'), t('quantity'), t('hosts'), everything ? t('project') : null].filter(Boolean),
          shown.map(one =>
            [
              h('a', {href: `#/reservation/${one.id}`}, named(one.name)),
              [badge(one.status), maintenanceBadge(one), one.degraded ? h('span', {class: 'badge failed'}, t('degraded')) : null],
              [
                span(seconds(one.start), seconds(one.end)),
                h(
                  'div',
                  {class: 'soft'},
                  one.status === 'active'
                    ? t('endsIn', {when: ago(seconds(one.end))})
                    : over.includes(one.status)
                      ? ''
                      : ago(seconds(one.start)),
                ),
              ],
              t(one.kind === 'host' ? 'countHosts' : 'countInstances', {count: one.quantity}),
              one.hosts.length ? named(one.hosts.join(', ')) : h('span', {class: 'soft'}, t('hostsLater')),
              everything ? app.project(one.project_id) : null,
            ].filter(cell => cell !== null),
          ),
          t('noReservations'),
        ),
      );
    } catch (error) {
      fill(place, problem(error));
    }
  }
  const box = (id, text, change) =>
    h(
      'p',
      {class: 'check'},
      h('input', {
        type: 'checkbox',
        id,
        change: event => {
          change(event.target.checked);
          read();
        },
      }),
      h('label', {for: id}, text),
    );
  fill(
    main,
    h(
      'div',
      {class: 'page'},
      h(
        'header',
        {class: 'page-head'},
        h('h1', {}, t('reservations')),
        h(
          'div',
          {class: 'line'},
          app.may('reservations:list_all')
            ? box('all-projects', t('allProjects'), on => {
                everything = on;
              })
            : null,
          box('with-past', t('withPast'), on => {
            past = on;
          }),
          app.may('feed:get')
            ? h('a', {href: '../v1/reservations.ics', download: 'reservations.ics', class: 'button'}, t('downloadICS'))
            : null,
        ),
      ),
      place,
      limits(),
    ),
  );
  read();
  const close = stream({calendar: read, hosts: () => {}, lost: read, state: () => {}});
  return close;
}

// limits shows what the project may hold and what it holds.
function limits() {
  const place = h('section', {class: 'cards'});
  get('v1/limits').then(
    ({limits: most, used}) => {
      const card = (title, value, limit) =>
        h(
          'div',
          {class: 'card'},
          h('h2', {}, title),
          h('p', {class: 'big'}, !limit ? String(value) : t('ofLimit', {value, limit})),
          limit
            ? h('meter', {min: '0', max: String(limit), value: String(value), 'aria-label': title})
            : limit === null
              ? h('p', {class: 'soft'}, t('noLimit'))
              : null,
        );
      fill(
        place,
        card(t('mostHosts'), used.most_hosts, most.max_hosts_per_project),
        card(t('hostHours'), Math.round(used.host_hours * 10) / 10, most.max_host_hours_per_project),
        card(t('longest'), most.max_duration ? length(most.max_duration) : t('noLimit'), undefined),
        card(t('ahead'), most.max_start_ahead ? length(most.max_start_ahead) : t('noLimit'), undefined),
      );
    },
    () => {},
  );
  return place;
}

// show shows one reservation.
export function show(main, app, id) {
  const place = h('div', {class: 'page'});
  fill(main, place);
  let one = null,
    editing = false;
  async function read() {
    if (editing) return;
    try {
      one = await get(`v1/reservations/${encodeURIComponent(id)}`);
      write();
    } catch (error) {
      fill(place, h('p', {}, h('a', {href: '#/calendar'}, t('back'))), problem(error));
    }
  }

  async function change(body, done) {
    try {
      await patch(`v1/reservations/${one.id}`, body);
      toast(done);
      editing = false;
      read();
    } catch (error) {
      toast(readable(error.message), 'bad');
    }
  }

  const atEnd = {delete: 'endDelete', shelve: 'endShelve', stop: 'endStop', leave: 'endLeave'};

  // may reports whether a rule allows a change of the reservation; one about maintenance must allow it too.
  const may = rule => app.may(rule) && (!one.maintenance || app.may('reservations:maintain'));

  function write() {
    const from = seconds(one.start),
      to = seconds(one.end),
      live = !over.includes(one.status) && one.status !== 'ending';
    const mine = may('reservations:update') && (app.belongs(one) || app.may('reservations:update_all_projects'));
    fill(
      place,
      h(
        'p',
        {class: 'soft'},
        h(
          'a',
          {href: `#/calendar?start=${Math.round(from - (to - from) * 0.3)}&width=${Math.round(Math.max(DAY, (to - from) * 1.8))}`},
          t('showInCalendar'),
        ),
        ' · ',
        h('a', {href: '#/reservations'}, t('reservations')),
      ),
      h(
        'header',
        {class: 'page-head'},
        h(
          'h1',
          {},
          named(one.name, {id: 'reservation-name'}),
          ' ',
          badge(one.status),
          ' ',
          maintenanceBadge(one),
          one.degraded ? h('span', {class: 'badge failed', title: one.degraded_reason}, t('degraded')) : null,
        ),
      ),
      h(
        'div',
        {class: 'columns'},
        h(
          'section',
          {class: 'card'},
          h('h2', {}, t('facts')),
          facts([
            [t('time'), h('span', {id: 'reservation-time'}, span(from, to))],
            [t('duration'), length(to - from)],
            [t('quantity'), t(one.kind === 'host' ? 'countHosts' : 'countInstances', {count: one.quantity})],
            [
              t('hosts'),
              one.hosts.length
                ? h(
                    'ul',
                    {class: 'plain-list'},
                    one.hosts.map(host => h('li', {}, named(host))),
                  )
                : t(over.includes(one.status) ? 'none' : 'hostsLater'),
            ],
            [t('servers'), servers()],
            [
              t('size'),
              one.resources
                ? t('sizeText', {vcpus: one.resources.vcpus || 0, memory: one.resources.memory_mb || 0, disk: one.resources.disk_gb || 0})
                : null,
            ],
            [t('filter'), one.host_properties ? h('code', {}, JSON.stringify(one.host_properties)) : null],
            [t('image'), one.image ? named(one.image) : null],
            [t('atEnd'), one.maintenance ? null : t(atEnd[one.on_end] || 'endLeave')],
            [t('project'), app.may('reservations:list_all') ? app.project(one.project_id) : null],
            [t('reason'), one.degraded_reason ? named(one.degraded_reason) : null],
            [t('id'), h('code', {}, one.id)],
          ]),
        ),
        over.includes(one.status) ? null : h('section', {class: 'card'}, h('h2', {}, t('use')), use()),
      ),
      live && mine ? h('section', {class: 'card'}, h('h2', {}, t('change')), changes(from, to)) : null,
      h(
        'section',
        {class: 'card'},
        h('h2', {}, t('events')),
        table(
          t('events'),
          [t('event'), t('time'), t('state'), t('detail')],
          one.events.map(event => [
            t(`event_${event.type}`),
            whenExactly(seconds(event.time)),
            event.done_at ? t('doneAt', {when: whenExactly(seconds(event.done_at))}) : t(`eventState_${event.state}`),
            event.detail ? named(event.detail) : '',
          ]),
          t('noEvents'),
        ),
      ),
    );
  }

  // servers lists the servers of an active reservation; only the question what a cancellation does to them names them.
  function servers() {
    if (one.status !== 'active' || !may('reservations:delete')) return null;
    const list = h('ul', {class: 'plain-list'}, h('li', {class: 'soft'}, t('loading')));
    remove(`v1/reservations/${one.id}`, {dry_run: true}).then(
      ({cancellation}) =>
        fill(
          list,
          cancellation.servers.length
            ? cancellation.servers.map(server => h('li', {}, named(server.name), ` (${server.status})`))
            : h('li', {}, t('none')),
        ),
      error => fill(list, h('li', {}, error.message)),
    );
    return list;
  }

  function use() {
    const link = h('div', {});
    if (app.may('feed:get')) {
      get('v1/feed').then(
        ({url}) => fill(link, h('h3', {}, t('feed')), h('p', {class: 'soft'}, t('feedWarning')), copied(url, t('copy'), t('copiedText'))),
        () => fill(link, h('a', {href: '../v1/reservations.ics', download: 'reservations.ics', class: 'button'}, t('downloadICS'))),
      );
    }
    const create = one.maintenance
      ? [
          'almanac host maintenance',
          ...one.hosts.map(quoted),
          `--start ${one.start}`,
          `--duration ${Math.round(seconds(one.end) - seconds(one.start))}s`,
          `--reason ${quoted(one.name)}`,
        ].join(' ')
      : [
          'almanac reservation create',
          quoted(one.name),
          `--quantity ${one.quantity}`,
          `--start ${one.start}`,
          `--duration ${Math.round(seconds(one.end) - seconds(one.start))}s`,
          one.kind === 'host' ? '' : `--kind instance`,
          one.host_properties ? `--properties ${quoted(JSON.stringify(one.host_properties))}` : '',
        ]
          .filter(Boolean)
          .join(' ');
    return [
      h('h3', {}, t('serverCommand')),
      copied(`openstack server create --hint reservation=${one.id} --flavor FLAVOR --image IMAGE NAME`, t('copy'), t('copiedText')),
      h('h3', {}, t('sameCommand')),
      copied(create, t('copy'), t('copiedText')),
      link,
    ];
  }

  function changes(from, to) {
    const name = h('input', {
      type: 'text',
      value: one.name,
      maxlength: '255',
      name: 'rename',
      input: () => {
        editing = true;
      },
    });
    const until = h('input', {
      type: 'datetime-local',
      value: timeField(to),
      name: 'until',
      input: () => {
        editing = true;
      },
    });
    const number = h('input', {
      type: 'number',
      min: '1',
      value: String(one.quantity),
      name: 'quantity',
      input: () => {
        editing = true;
      },
    });
    const submits = (body, text) => event => {
      event.preventDefault();
      change(body(), text);
    };
    return [
      h(
        'div',
        {class: 'forms'},
        h(
          'form',
          {submit: submits(() => ({name: name.value}), t('renamed'))},
          field(t(one.maintenance ? 'reason' : 'name'), name),
          h('button', {}, t('rename')),
        ),
        h(
          'form',
          {submit: submits(() => ({end_time: iso(readField(until.value))}), t('endChanged'))},
          field(t('newEnd'), until),
          h('button', {}, t('changeEnd')),
        ),
        one.status === 'pending' && !one.maintenance
          ? h(
              'form',
              {submit: submits(() => ({quantity: Number(number.value)}), t('quantityChanged'))},
              field(t('quantity'), number),
              h('button', {}, t('changeQuantity')),
            )
          : null,
      ),
      h(
        'div',
        {class: 'choices'},
        [HOUR, 4 * HOUR, DAY].map(more =>
          button(t('longer', {length: length(more)}), () => change({end_time: iso(to + more)}, t('endChanged')), {
            class: 'choice',
            'data-more': String(more),
          }),
        ),
        may('reservations:delete') ? button(t('cancelReservation'), cancel, {class: 'danger', id: 'cancel'}) : null,
      ),
    ];
  }

  // cancel asks once more, with what will happen to the servers.
  async function cancel() {
    let foreseen;
    try {
      foreseen = (await remove(`v1/reservations/${one.id}`, {dry_run: true})).cancellation;
    } catch (error) {
      toast(readable(error.message), 'bad');
      return;
    }
    const dialog = h(
      'dialog',
      {'aria-labelledby': 'cancel-title', close: () => dialog.remove()},
      h('h2', {id: 'cancel-title'}, t('cancelTitle')),
      h('p', {}, named(one.name)),
      foreseen.servers.length
        ? [
            h('p', {}, t('cancelServers')),
            h(
              'ul',
              {class: 'plain-list'},
              foreseen.servers.map(server => h('li', {}, named(server.name), ': ', t(`becomes_${server.becomes}`))),
            ),
          ]
        : h('p', {}, t('cancelNoServers')),
      h(
        'div',
        {class: 'actions'},
        button(t('keep'), () => dialog.close()),
        button(
          t('cancelReservation'),
          async () => {
            try {
              await remove(`v1/reservations/${one.id}`);
              toast(t('canceled', {name: one.name}));
            } catch (error) {
              toast(readable(error.message), 'bad');
            }
            dialog.close();
            read();
          },
          {class: 'danger', id: 'confirm-cancel'},
        ),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  }

  read();
  return stream({
    calendar: event => {
      if (!event.reservation_id || event.reservation_id === id) read();
    },
    hosts: () => {},
    lost: read,
    state: () => {},
  });
}
