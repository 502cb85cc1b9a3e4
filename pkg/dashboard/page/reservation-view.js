// SPDX-License-Identifier: Apache-2.0
// What the page of one reservation shows.
import {t} from './texts.js';
import {failure} from './questions.js';
import {liveText} from './live.js';
import {calendarPlace} from './kept.js';
import {length, readable, seconds, span, when, whenExactly, zoneName} from './time.js';
import {againLink, badge, badges, filterText, isOver, sizeText, spanLink} from './reservation-words.js';
import {endText, isPart, sizeWords} from './reservation-fields.js';
import {changes} from './reservation-change.js';
import {question} from './reservation-cancel.js';
import {command, groupCommands, serverCommand} from './command.js';
import {button, facts, h, named, problem, table, together} from './view.js';

// viewOf returns the view of one reservation. `may` reports whether a rule allows a change of it.
export const viewOf = (app, may) => (state, send) => {
  const {one, live, clock} = state,
    mine = one && may('reservations:update', one) && (app.belongs(one) || app.may('reservations:update_all_projects')),
    changeable = one && !isOver(one) && one.status !== 'ending'; // or at least canceled
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
        use(state, app, send),
      ),
    changeable && mine && isPart(state) ? groupOf(state, app, send, may('reservations:delete', one)) : null,
    changeable && mine ? h('section', {class: 'card'}, h('h2', {}, t(isPart(state) ? 'changePart' : 'change')), changes(state, send, may, app.session.on_end || [])) : null,
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

function waitsText({window_start: start, window_end: end, waiting: {until, next_start: next}}) {
  const text = t('waitsText', {window: span(seconds(start), seconds(end)), until: when(seconds(until))});
  return next ? together(text, '. ', t('roomFrom', {when: when(seconds(next))})) : text;
}

function factsOf({one, group, servers, names}, app) {
  const [from, to] = [seconds(one.start), seconds(one.end)];
  return facts([
    [t('time'), together(h('span', {id: 'reservation-time'}, span(from, to)), ' ', h('span', {class: 'soft', id: 'reservation-zone'}, zoneName()))],
    [t('duration'), length(to - from)],
    [t('movable'), one.notice ? t('movableText', {window: span(seconds(one.window_start), seconds(one.window_end)), notice: length(one.notice)}) : null],
    [t('waits'), one.waiting ? waitsText(one) : null],
    [t('quantity'), sizeText(one)],
    [t('partOf'), group ? partsOf(group, one) : one.lease_id ? h('code', {}, one.lease_id) : null],
    [t('occurrence'), one.series_id ? t('occurrenceText', {time: one.occurrence.replace('T', ' '), series: one.series_id}) : null],
    [
      t('hosts'),
      plainList(
        one.hosts.map(host => named(host)),
        t(isOver(one) ? 'none' : one.waiting ? 'noHostsYet' : 'hostsLater'),
      ),
    ],
    [t('servers'), one.status === 'active' && servers ? serversOf(servers) : null],
    [t('size'), one.resources ? sizeWords(one.resources) : null],
    [t('affinity'), one.affinity && one.affinity !== 'none' ? t(`affinity_${one.affinity}`) : null],
    [t('together'), one.together ? togetherText(one.together) : null],
    [t('filter'), filterText(one)],
    [t('image'), one.image ? named(one.image) : null],
    [t('atEnd'), one.maintenance || one.kind === 'address' ? null : endText(one.on_end)],
    [t('project'), one.project_id && app.may('reservations:list_all') ? named(names[one.project_id] || one.project_id) : null],
    [t('reason'), one.degraded_reason ? named(readable(one.degraded_reason)) : null],
    [t('id'), h('code', {}, one.id)],
  ]);
}

// partsOf names a group and its parts, each with a link but the one that is shown.
const partsOf = (group, shown) =>
  together(
    h('span', {id: 'group-name'}, named(group.name)),
    plainList(
      group.reservations.map(one => [
        one.id === shown.id ? h('strong', {}, sizeText(one)) : h('a', {href: `#/reservation/${encodeURIComponent(one.id)}`}, sizeText(one)),
        one.name === group.name ? null : [' ', named(one.name)],
        ' ',
        badge(one.status),
      ]),
    ),
  );

// groupOf tells how the group of a reservation is changed and canceled, since this reservation alone cannot be.
function groupOf({group}, app, send, mayDelete) {
  if (!group) return null;
  const {change, remove} = groupCommands(group, app.now());
  return h(
    'section',
    {class: 'card', id: 'of-group'},
    h('h2', {}, t('partOf')),
    h('p', {}, t('partText', {name: group.name, count: group.reservations.length})),
    h('h3', {}, t('changeGroup')),
    copied('change-group', change, send),
    mayDelete && together(h('h3', {}, t('cancelGroup')), copied('delete-group', remove, send)),
  );
}

// togetherText names how the hosts lie to each other, and whether they do.
const togetherText = ({by, rule, values, required, kept, apart_from: apart}) =>
  [rule && t(`together_${rule}`, {by, values}), apart && t('togetherApart', {by, ids: apart.join(', ')}), rule !== 'fewest' && !required && t('togetherPreferred'), !kept && t('togetherBroken')].filter(Boolean).join(', ');

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
function use(state, app, send) {
  const {one, group, feed} = state,
    server = isOver(one) ? null : serverCommand(one),
    create = sameCommand(one, group, app.now());
  if (!server && !create) return null;
  if (one.maintenance) return h('section', {class: 'card'}, h('h2', {}, t('sameMaintenance')), copied('same-command', create.text, send));
  return h(
    'section',
    {class: 'card'},
    h('h2', {}, t('use')),
    server && together(h('h3', {}, t('serverCommand')), copied('server-command', server, send)),
    create && together(h('h3', {}, t(create.whole ? 'sameGroup' : 'sameCommand')), copied('same-command', create.text, send)),
    create && create.lacks.length > 0 ? h('p', {class: 'soft'}, t('commandLacks', {names: create.lacks.join(', ')})) : null,
    feed
      ? together(h('h3', {}, t('feed')), h('p', {class: 'soft'}, t('feedWarning')), copied('feed-link', feed, send))
      : app.may('feed:get') &&
          h('p', {}, h('a', {href: '../v1/reservations.ics', download: 'reservations.ics', class: 'button'}, t('downloadICS'))),
  );
}

// sameCommand returns the command that books the same: the whole group of a reservation that is one of several.
function sameCommand(one, group, now) {
  if (!isPart({one, group})) return command(one, now);
  const text = group && groupCommands(group, now).create;
  return text ? {text, lacks: [], whole: true} : null;
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
