// SPDX-License-Identifier: Apache-2.0
// What the list of reservations shows.
import {t} from './texts.js';
import {failure, isOpen} from './questions.js';
import {liveText} from './live.js';
import {ago, length, seconds, span} from './time.js';
import {badges, hostNames, isOver, sizeText} from './reservation-words.js';
import {button, check, field, h, latest, named, problem, select, table, tableRow} from './view.js';
import {MOST_SHOWN, pasts} from './list-state.js';

const heads = [
  ['name', 'name'],
  ['status', 'status'],
  ['time', 'start'],
  ['quantity', 'quantity'],
  ['hosts', 'hosts'],
  ['project', 'project'],
];

const headsOf = terms => heads.filter(([head]) => head !== 'project' || terms.everything);

const numbers = new Intl.NumberFormat();

// grouped returns a count as people write it; 1 stays a number, because texts have another form for it.
const grouped = count => (count === 1 ? 1 : numbers.format(count));

// viewOf returns the view of the list. What has not changed is the same element as before, which preact skips: with ten
// events a second the view is drawn as often.
export function viewOf(app) {
  const rowOf = remembered(),
    [toolsOf, tableOf, limitsOf] = [latest(), latest(), latest()];
  return (state, send) => {
    const {found, shown, terms, sort, names} = state,
      minute = Math.floor(state.at / 30),
      empty = state.search ? 'noneFound' : 'noReservations';
    return h(
      'div',
      {class: 'page'},
      h(
        'header',
        {class: 'page-head'},
        h('h1', {}, t('reservations')),
        h('span', {class: state.live.on ? 'live on' : 'live'}, liveText(state.live, state.clock)),
      ),
      toolsOf([terms, state.search, sort], () => tools(state, send, app)),
      trouble(state, send),
      h('p', {class: 'soft', id: 'count', tabindex: '-1'}, countText(state)),
      nothingYet(state)
        ? null
        : tableOf([found, shown, terms, sort, names, minute, empty], () =>
            table(
              t('reservations'),
              headsOf(terms).map(([head, by]) => headOf(head, by, sort, send)),
              found.slice(0, shown).map(row => rowOf(row, [terms, names, minute], () => rowView(row.one, terms, names))),
              t(empty),
            ),
          ),
      rest(state, send),
      limitsOf([state.limits.value], () => limits(state.limits.value)),
    );
  };
}

// remembered returns what keeps an element for each row.
function remembered() {
  const known = new WeakMap();
  return (row, of, make) => {
    if (!known.has(row)) known.set(row, latest());
    return known.get(row)(of, make);
  };
}

const nothingYet = state => state.rows.size === 0 && Boolean(state.load || state.refused);

function headOf(head, by, sort, send) {
  const chosen = sort.by === by,
    sign = chosen ? (sort.down ? ' ▾' : ' ▴') : '';
  return {
    text: t(head),
    attributes: {'aria-sort': chosen ? (sort.down ? 'descending' : 'ascending') : null},
    content: button([t(head), h('span', {'aria-hidden': 'true'}, sign)], () => send({type: 'sort', by}), {
      class: 'plain head',
      id: `by-${by}`,
    }),
  };
}

function rowView(one, terms, names) {
  const [start, end] = [seconds(one.start), seconds(one.end)];
  return tableRow(
    headsOf(terms).map(([head]) => t(head)),
    {
      key: one.id,
      cells: [
        h('a', {href: `#/reservation/${encodeURIComponent(one.id)}`}, named(one.name)),
        badges(one),
        [
          span(start, end),
          h('div', {class: 'soft'}, one.status === 'active' ? t('endsIn', {when: ago(end)}) : isOver(one) ? '' : ago(start)),
        ],
        sizeText(one),
        hostNames(one),
        terms.everything ? named(names[one.project_id] || one.project_id) : null,
      ].filter(cell => cell !== null),
    },
  );
}

function tools({terms, search, sort}, send, app) {
  return h(
    'div',
    {class: 'line list-tools', role: 'search'},
    field(
      t('search'),
      'search',
      h('input', {
        type: 'search',
        value: search,
        placeholder: t(terms.everything ? 'searchHintAll' : 'searchHint'),
        autocomplete: 'off',
        input: event => send({type: 'search', text: event.currentTarget.value}),
      }),
    ),
    field(
      t('past'),
      'past',
      select(
        pasts.map(one => [one, t(`past_${one}`)]),
        terms.past,
        past => send({type: 'choose', terms: {past}}),
      ),
    ),
    h(
      'div',
      {class: 'sort-choice'},
      field(
        t('sortBy'),
        'sort',
        select(
          headsOf(terms).map(([head, by]) => [by, t(head)]),
          sort.by,
          by => send({type: 'sort', by}),
        ),
      ),
    ),
    app.may('reservations:list_all') && app.session.project_id
      ? check('all-projects', t('allProjects'), terms.everything, everything => send({type: 'choose', terms: {everything}}))
      : null,
    app.may('feed:get') ? h('a', {href: '../v1/reservations.ics', download: 'reservations.ics', class: 'button'}, t('downloadICS')) : null,
  );
}

// trouble tells why rows are missing or old, and when they are asked for again.
function trouble({questions, refused, clock}, send) {
  const failed = failure(questions, 'rows'),
    error = failed || refused;
  if (!error) return null;
  const wait = failed ? Math.ceil((questions.open.rows.until - clock) / 1000) : 0;
  return problem({message: wait > 0 ? `${error.message} ${t('againIn', {seconds: wait})}` : error.message}, () => send({type: 'retry'}));
}

function countText({rows, found, search, load, refused, questions}) {
  if (load && load.anew)
    return failure(questions, 'rows') ? '' : rows.size > 0 ? t('readSoFar', {count: grouped(rows.size)}) : t('loading');
  if (refused && rows.size === 0) return '';
  return search.trim()
    ? t('foundOf', {found: numbers.format(found.length), count: grouped(rows.size)})
    : t('reservationCount', {count: grouped(rows.size)});
}

// rest tells what is not shown, with a button that shows more.
function rest({found, shown, more, load, questions}, send) {
  const parts = [];
  if (found.length > shown) {
    parts.push(
      h('p', {class: 'soft'}, t('shownOf', {shown, count: grouped(found.length)}), shown >= MOST_SHOWN ? ` ${t('searchOthers')}` : ''),
    );
    if (shown < MOST_SHOWN) parts.push(button(t('more'), () => send({type: 'more'}), {id: 'more'}));
  }
  if (more && !load) {
    parts.push(h('p', {class: 'box', id: 'not-all'}, t('notAll')));
    parts.push(
      button(t('loadMore'), () => send({type: 'readOn'}), {id: 'read-on', 'aria-disabled': isOpen(questions, 'rows') ? 'true' : null}),
    );
  }
  return parts.length > 0 ? h('div', {class: 'rest'}, parts) : null;
}

// limits shows what the project may hold and what it holds.
function limits(known) {
  if (!known) return null;
  const {limits: most, used} = known;
  const card = (title, value, limit) =>
    h(
      'div',
      {class: 'card', key: title},
      h('h2', {}, title),
      h('p', {class: 'big'}, limit ? t('ofLimit', {value, limit}) : String(value)),
      limit
        ? h('meter', {min: '0', max: String(limit), value: String(value), 'aria-label': title})
        : limit === null
          ? h('p', {class: 'soft'}, t('noLimit'))
          : null,
    );
  const time = limit => (limit ? length(limit) : t('noLimit'));
  return h(
    'section',
    {class: 'cards', 'aria-label': t('limits')},
    card(t('mostHosts'), used.most_hosts, most.max_hosts_per_project),
    card(t('hostHours'), Math.round(used.host_hours * 10) / 10, most.max_host_hours_per_project),
    card(t('longest'), time(most.max_duration), undefined),
    card(t('ahead'), time(most.max_start_ahead), undefined),
  );
}
