// SPDX-License-Identifier: Apache-2.0
// What the page of one reservation shows.
import {t} from './texts.js';
import {failure} from './questions.js';
import {liveText} from './live.js';
import {calendarPlace} from './kept.js';
import {length, readable, seconds, span, whenExactly, zoneName} from './time.js';
import {againLink, badges, filterText, isOver, sizeText, spanLink} from './reservation-words.js';
import {changes, question} from './reservation-change.js';
import {command, serverCommand} from './command.js';
import {button, facts, h, named, problem, table, together} from './view.js';

// viewOf returns the view of one reservation. `may` reports whether a rule allows a change of it.
export const viewOf = (app, may) => (state, send) => {
  const {one, live, clock} = state,
    mine = one && may('reservations:update', one) && (app.belongs(one) || app.may('reservations:update_all_projects')),
    changeable = one && !isOver(one) && one.status !== 'ending';
  return h(
    'div',
    {class: 'page'},
    h(
      'div',
      {class: 'page-head soft'},
      h('span', {}, links(one, app)),
      h('span', {class: live.on ? 'live on' : 'live'}, liveText(live, clock)),
    ),
    trouble(state, send),
    one ? head(one) : state.refused ? null : h('p', {class: 'soft'}, t('loading')),
    one &&
      h(
        'div',
        {class: 'columns'},
        h('section', {class: 'card'}, h('h2', {}, t('facts')), factsOf(state, app)),
        use(one, state.feed, app, send),
      ),
    changeable && mine ? h('section', {class: 'card'}, h('h2', {}, t('change')), changes(state, send, may)) : null,
    one && h('section', {class: 'card'}, h('h2', {}, t('events')), events(one)),
    question(state, send),
  );
};

function links(one, app) {
  const [from, to] = one ? [seconds(one.start), seconds(one.end)] : [];
  const all = [
    h('a', {href: calendarPlace(), id: 'back'}, t('back')),
    one && h('a', {href: spanLink(from, to)}, t('showInCalendar')),
    one && one.kind !== 'address' && app.may('reservations:create') && h('a', {href: againLink(one), id: 'again'}, t(one.maintenance ? 'planAgain' : 'bookAgain')),
    h('a', {href: '#/reservations'}, t('reservations')),
  ].filter(Boolean);
  return together(all.flatMap((link, i) => (i === 0 ? [link] : [' · ', link])));
}

// trouble tells why there is no reservation, or why it may be old.
function trouble({questions, refused, clock}, send) {
  const failed = failure(questions, 'one'),
    error = failed || refused;
  if (!error) return null;
  const wait = failed ? Math.ceil((questions.open.one.until - clock) / 1000) : 0;
  return problem({message: wait > 0 ? `${error.message} ${t('againIn', {seconds: wait})}` : error.message}, () => send({type: 'retry'}));
}

const head = one =>
  h(
    'header',
    {class: 'page-head'},
    h('h1', {id: 'reservation-head', tabindex: '-1'}, named(one.name, {id: 'reservation-name'}), ' ', badges(one)),
  );

const atEnd = {delete: 'endDelete', shelve: 'endShelve', stop: 'endStop', leave: 'endLeave'};

function factsOf({one, servers, names}, app) {
  const [from, to] = [seconds(one.start), seconds(one.end)],
    size = one.resources;
  return facts([
    [t('time'), together(h('span', {id: 'reservation-time'}, span(from, to)), ' ', h('span', {class: 'soft', id: 'reservation-zone'}, zoneName()))],
    [t('duration'), length(to - from)],
    [t('quantity'), sizeText(one)],
    [
      t('hosts'),
      plainList(
        one.hosts.map(host => named(host)),
        t(isOver(one) ? 'none' : 'hostsLater'),
      ),
    ],
    [t('servers'), one.status === 'active' && servers ? serversOf(servers) : null],
    [t('size'), size ? t('sizeText', {vcpus: size.vcpus || 0, memory: size.memory_mb || 0, disk: size.disk_gb || 0}) : null],
    [t('affinity'), one.affinity && one.affinity !== 'none' ? t(`affinity_${one.affinity}`) : null],
    [t('filter'), filterText(one)],
    [t('image'), one.image ? named(one.image) : null],
    [t('atEnd'), one.maintenance || one.kind === 'address' ? null : t(atEnd[one.on_end] || 'endLeave')],
    [t('project'), one.project_id && app.may('reservations:list_all') ? named(names[one.project_id] || one.project_id) : null],
    [t('reason'), one.degraded_reason ? named(readable(one.degraded_reason)) : null],
    [t('id'), h('code', {}, one.id)],
  ]);
}

const plainList = (items, empty) =>
  items.length === 0
    ? empty
    : h(
        'ul',
        {class: items.length > 6 ? 'plain-list many' : 'plain-list'},
        items.map((item, i) => h('li', {key: i}, item)),
      );

// serversOf lists the servers of an active reservation; only the question what a cancellation does to them names them.
function serversOf({list, error}) {
  if (!list) return h('span', {class: 'soft'}, error ? error.message : t('loading'));
  return plainList(
    list.map(server => [named(server.name), ` (${server.status})`]),
    t('none'),
  );
}

// use tells what the owner can do with a reservation elsewhere. Nobody uses maintenance: it has only its command.
function use(one, feed, app, send) {
  const server = isOver(one) ? null : serverCommand(one),
    create = command(one, app.now());
  if (!server && !create) return null;
  if (one.maintenance) return h('section', {class: 'card'}, h('h2', {}, t('sameMaintenance')), copied('same-command', create.text, send));
  return h(
    'section',
    {class: 'card'},
    h('h2', {}, t('use')),
    server && together(h('h3', {}, t('serverCommand')), copied('server-command', server, send)),
    create && together(h('h3', {}, t('sameCommand')), copied('same-command', create.text, send)),
    create && create.lacks.length > 0 ? h('p', {class: 'soft'}, t('commandLacks', {names: create.lacks.join(', ')})) : null,
    feed
      ? together(h('h3', {}, t('feed')), h('p', {class: 'soft'}, t('feedWarning')), copied('feed-link', feed, send))
      : app.may('feed:get') &&
          h('p', {}, h('a', {href: '../v1/reservations.ics', download: 'reservations.ics', class: 'button'}, t('downloadICS'))),
  );
}

// copied returns a text with a button that copies it.
const copied = (id, text, send) =>
  h(
    'div',
    {class: 'command'},
    h('code', {tabindex: '0', id}, text),
    button(t('copy'), () => send({type: 'copy', id})),
  );

// happened returns the events of a reservation. Nobody is warned before maintenance ends.
const happened = one => one.events.filter(({type}) => !one.maintenance || type !== 'before_end');

const events = one =>
  table(
    t('events'),
    [t('event'), t('time'), t('state'), t('detail')],
    happened(one).map((event, i) => ({
      key: `${event.type} ${event.time} ${i}`,
      cells: [
        t(`event_${event.type}`),
        whenExactly(seconds(event.time)),
        event.done_at ? t('doneAt', {when: whenExactly(seconds(event.done_at))}) : t(`eventState_${event.state}`),
        event.detail ? named(readable(event.detail)) : '',
      ],
    })),
    t('noEvents'),
  );
