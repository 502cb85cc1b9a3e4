// SPDX-License-Identifier: Apache-2.0
// The calendar: its tools, its data, and the picture or the table of it.
import {announce, button, facts, fill, h, named, problem, select, table, toast} from './dom.js';
import {t} from './texts.js';
import {all, calendar as readCalendar} from './client.js';
import {stream} from './stream.js';
import {claimAt, freeUntil, groupings, hostOf, maintenanceAt, ROW, rowsOf, usable, use} from './model.js';
import {colors, draw, end, HEAD, timeAt} from './picture.js';
import {follow} from './pointer.js';
import {listen} from './keys.js';
import {filterEditor} from './filters.js';
import {bookingForm, changeForm} from './booking.js';
import {DAY, HOUR, MINUTE, ago, iso, isUTC, length, now, redrawEvery, setUTC, span, startOfDay, when, zoneName} from './time.js';

const ranges = {day: DAY, week: 7 * DAY, month: 31 * DAY, quarter: 92 * DAY};
const NARROWEST = HOUR,
  WIDEST = 400 * DAY;

// show builds the calendar and returns what ends it.
export function show(main, app, query) {
  const ending = new AbortController();
  const wide = () => view.width - view.label;
  const view = {
    rows: [],
    total: 0,
    start: 0,
    scale: 1,
    label: 160,
    width: 0,
    height: 0,
    scroll: 0,
    ratio: 1,
    colors: colors(),
    hover: null,
    cursor: {row: 0, at: now(), mark: null},
    focused: false,
    focusClaim: null,
    drag: null,
    stretch: null,
    offer: null,
    blocked: [],
    chosen: '',
    nameOf: claim =>
      own.get(`${claim.start} ${claim.end} ${claim.kind}`) && claim.mine ? own.get(`${claim.start} ${claim.end} ${claim.kind}`) : null,
  };
  const hosts = new Map();
  let own = new Map(),
    loaded = null,
    filter = query.get('filter') || '',
    group = query.get('group') ?? localStorage.getItem('group') ?? '';
  let shown = Math.min(WIDEST, Math.max(NARROWEST, Number(query.get('width')) || ranges.week)),
    start = Number(query.get('start')) || 0,
    asTable = localStorage.getItem('table') === 'yes';
  if (!start) start = now() - shown / 8;

  // The parts of the page.
  const canvas = h('canvas', {'aria-hidden': 'true'});
  const spacer = h('div', {class: 'spacer'});
  const picture = h(
    'div',
    {
      class: 'picture',
      tabindex: '0',
      role: 'application',
      'aria-label': t('pictureLabel'),
      'aria-describedby': 'keys-help',
      'aria-roledescription': t('calendar'),
    },
    canvas,
    spacer,
  );
  const rowsTable = h('div', {class: 'table-view', hidden: true});
  const tip = h('div', {class: 'tip', hidden: true});
  const hint = h('p', {class: 'hint', hidden: true}, t('dragHint'));
  const stage = h('div', {class: 'stage'}, picture, rowsTable, hint, tip);
  const notice = h('div', {class: 'notice'});
  const panel = h('aside', {class: 'panel', hidden: true, 'aria-label': t('panel')});
  const state = h('span', {class: 'live', title: t('connecting')}, t('connecting'));
  const rangeText = h('h2', {class: 'range', 'aria-live': 'off'});
  const rangeButtons = Object.keys(ranges).map(name =>
    button(t(name), () => setRange(ranges[name]), {'data-range': name, 'aria-pressed': 'false'}),
  );
  const zone = select(
    [
      ['local', t('localTime')],
      ['utc', t('utc')],
    ],
    isUTC() ? 'utc' : 'local',
    value => {
      setUTC(value === 'utc');
      settled();
    },
    {'aria-label': t('timeZone')},
  );
  const grouping = select(
    [['', t('noGroups')]],
    '',
    value => {
      group = value;
      localStorage.setItem('group', value);
      arrange();
      settled();
    },
    {'aria-label': t('groupBy')},
  );
  const tableSwitch = button(
    t('table'),
    () => {
      asTable = !asTable;
      localStorage.setItem('table', asTable ? 'yes' : 'no');
      layout();
    },
    {'aria-pressed': String(asTable), class: 'plain', id: 'table-switch'},
  );
  const editor = filterEditor(filter, text => {
    filter = text;
    loaded = null;
    load();
    settled();
  });
  const filterBox = h('details', {class: 'filter-box', open: filter !== ''}, h('summary', {}, t('filter')), editor.element);

  fill(
    main,
    h(
      'div',
      {class: 'calendar'},
      h(
        'div',
        {class: 'tools'},
        h(
          'div',
          {class: 'buttons'},
          button('‹', () => pan(-wide() * 0.8), {'aria-label': t('earlier'), title: t('earlier')}),
          button(t('today'), showNow, {id: 'today'}),
          button('›', () => pan(wide() * 0.8), {'aria-label': t('later'), title: t('later')}),
        ),
        h('div', {class: 'buttons', role: 'group', 'aria-label': t('range')}, rangeButtons),
        h(
          'div',
          {class: 'buttons zoom'},
          button('+', () => zoom(1 / 1.5, null), {'aria-label': t('zoomIn'), title: t('zoomIn')}),
          button('−', () => zoom(1.5, null), {'aria-label': t('zoomOut'), title: t('zoomOut')}),
        ),
        rangeText,
        h(
          'div',
          {class: 'buttons end'},
          grouping,
          zone,
          tableSwitch,
          app.may('reservations:create') ? button(t('book'), () => book(null), {class: 'main', id: 'book'}) : null,
        ),
      ),
      filterBox,
      notice,
      h('div', {class: 'area'}, stage, panel),
      h('div', {class: 'legend'}, legend(), state),
      h('p', {class: 'hidden', id: 'keys-help'}, t('keysHelp')),
    ),
  );

  let asked = false;
  function redraw() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      if (view.width > 0 && !asTable) draw(canvas, view);
    });
  }

  // layout fits the canvas to its frame.
  function layout() {
    tableSwitch.setAttribute('aria-pressed', String(asTable));
    picture.hidden = asTable;
    rowsTable.hidden = !asTable;
    if (asTable) hint.hidden = true;
    const keep = view.width ? end(view) - view.start : shown;
    view.width = asTable ? stage.clientWidth : picture.clientWidth;
    view.height = stage.clientHeight;
    view.label = view.width < 600 ? 104 : 168;
    view.ratio = Math.min(3, devicePixelRatio || 1);
    canvas.width = Math.round(view.width * view.ratio);
    canvas.height = Math.round(view.height * view.ratio);
    canvas.style.width = `${view.width}px`;
    canvas.style.height = `${view.height}px`;
    view.scale = Math.max(1, wide()) / keep;
    stretchSpacer();
    if (asTable) writeTable();
    redraw();
  }

  function stretchSpacer() {
    spacer.style.height = `${Math.max(0, view.total + HEAD + 8 - view.height)}px`;
  }

  picture.addEventListener(
    'scroll',
    () => {
      view.scroll = picture.scrollTop;
      tip.hidden = true;
      redraw();
    },
    {passive: true},
  );
  const sized = new ResizeObserver(layout);
  sized.observe(stage);
  const tick = setInterval(redraw, redrawEvery());

  // Moving in time.
  function moveTo(at) {
    view.start = at;
    moved();
  }
  function pan(pixels) {
    moveTo(view.start + pixels / view.scale);
  }
  function zoom(factor, px) {
    const center = px === null ? view.label + wide() / 2 : Math.max(px, view.label),
      at = timeAt(view, center);
    const width = Math.min(WIDEST, Math.max(NARROWEST, (end(view) - view.start) * factor));
    view.scale = wide() / width;
    view.start = at - (center - view.label) / view.scale;
    moved();
  }
  function setRange(width) {
    view.scale = wide() / width;
    view.start = width >= 31 * DAY ? startOfDay(now(), -Math.round(width / DAY / 10)) : now() - width / 8;
    moved();
  }
  function showNow() {
    moveTo(now() - (end(view) - view.start) / 8);
  }

  let settling;
  function moved() {
    redraw();
    tip.hidden = true;
    clearTimeout(settling);
    settling = setTimeout(() => {
      settled();
      load();
    }, 140);
  }

  // settled writes what is in view into the address and the tools.
  function settled() {
    const width = end(view) - view.start;
    rangeText.textContent = span(view.start, end(view));
    for (const one of rangeButtons) one.setAttribute('aria-pressed', String(Math.abs(ranges[one.dataset.range] / width - 1) < 0.02));
    zone.title = zoneName();
    const address = new URLSearchParams({start: Math.round(view.start), width: Math.round(width)});
    if (filter) address.set('filter', filter);
    if (group) address.set('group', group);
    history.replaceState(null, '', `#/calendar?${address}`);
    redraw();
    if (asTable) writeTable();
  }

  // The data.
  let reading = null;
  async function load(force = false) {
    const width = end(view) - view.start;
    if (!force && loaded && loaded.from <= view.start && loaded.to >= end(view)) return;
    const from = startOfDay(view.start - width * 0.4),
      to = startOfDay(end(view) + width * 0.4, 1);
    const range = force && loaded && loaded.from <= view.start && loaded.to >= end(view) ? loaded : {from, to};
    reading?.abort();
    const mine = (reading = new AbortController());
    try {
      const page = await readPages(range, {}, mine.signal);
      await readOwn(range, page.hosts, mine.signal);
      if (mine.signal.aborted || ending.signal.aborted) return;
      hosts.clear();
      for (const host of page.hosts) hosts.set(host.host, hostOf(host));
      loaded = range;
      fill(notice, page.unknown.length ? h('p', {class: 'box'}, t('unknownProperties', {names: page.unknown.join(', ')})) : null);
      editor.fail('');
      offerGroups();
      arrange();
      performance.mark('calendar-shown');
    } catch (error) {
      if (error.name === 'AbortError' || ending.signal.aborted) return;
      if (error.field === 'filter') {
        editor.fail(error.message);
        filterBox.open = true;
      } else fill(notice, problem(error));
    }
  }

  const readPages = (range, more, signal) =>
    readCalendar(
      {start: iso(range.from), end: iso(range.to), filter, facts: app.may('hosts:list') ? 'true' : '', limit: 1000, ...more},
      signal,
    );

  // readOwn reads the pending reservations of the project if a claim is one of theirs: the calendar has no name for it.
  async function readOwn(range, some, signal) {
    if (!some.some(host => host.claims.some(claim => claim.mine && !claim.reservation_id))) return;
    const list = await all(
      'v1/reservations',
      {start: iso(range.from), end: iso(range.to), status: 'pending,starting'},
      'reservations',
      2000,
      signal,
    );
    const found = new Map();
    for (const one of list) {
      const key = `${Date.parse(one.start) / 1000} ${Date.parse(one.end) / 1000} ${one.kind}`;
      found.set(key, found.has(key) ? null : one);
    }
    own = found;
  }

  // refresh reads some hosts again, or all of them if there are many.
  async function refresh(names) {
    if (!loaded) return;
    const known = [...names].filter(name => hosts.has(name));
    if (names.size === 0 || known.length > 60 || known.length < names.size) {
      await load(true);
      return;
    }
    try {
      const page = await readPages(loaded, {host: known.join(','), limit: ''}, ending.signal);
      await readOwn(loaded, page.hosts, ending.signal);
      for (const host of page.hosts) hosts.set(host.host, hostOf(host));
      arrange();
    } catch (error) {
      if (error.name !== 'AbortError') await load(true);
    }
  }

  // later collects events that follow one another, so that they are one request.
  let waiting = null,
    pending = new Set();
  function later(names, everything) {
    if (everything) pending = null;
    else if (pending) for (const name of names) pending.add(name);
    waiting ||= setTimeout(() => {
      const these = pending || new Set();
      waiting = null;
      pending = new Set();
      refresh(these);
    }, 120);
  }

  const close = stream({
    calendar: event => {
      if (event.mine && event.change === 'changed' && event.status !== 'pending' && event.status !== statusOf(event.reservation_id))
        toast(t('statusNow', {name: event.name, status: t(`status_${event.status}`)}));
      if (loaded && Date.parse(event.end) / 1000 >= loaded.from && Date.parse(event.start) / 1000 <= loaded.to)
        later(event.hosts, event.hosts.length === 0);
    },
    hosts: event => later(event.hosts, event.hosts.length === 0),
    lost: () => later([], true),
    state: connected => {
      state.className = connected ? 'live on' : 'live';
      state.textContent = state.title = t(connected ? 'liveOn' : 'connecting');
    },
  });

  // statusOf returns the status of a reservation as the calendar last showed it.
  function statusOf(id) {
    for (const host of hosts.values()) {
      const claim = host.claims.find(one => one.id === id);
      if (claim) return claim.status;
    }
    return '';
  }

  function offerGroups() {
    const list = [
      ['', t('noGroups')],
      ['zone', t('zone')],
      ['aggregates', t('aggregates')],
      ...groupings(hosts.values()).map(name => [name, name]),
    ];
    fill(
      grouping,
      list.map(([value, text]) => h('option', {value, selected: value === group}, text)),
    );
  }

  function arrange() {
    const {rows, height} = rowsOf([...hosts.values()], group);
    view.rows = rows;
    view.total = height;
    view.hover = null;
    view.cursor.row = Math.min(view.cursor.row, Math.max(0, rows.length - 1));
    stretchSpacer();
    picture.classList.toggle('empty', rows.length === 0);
    rowsTable.dataset.hosts = picture.dataset.hosts = String(hosts.size);
    picture.dataset.claims = String([...hosts.values()].reduce((sum, host) => sum + host.claims.length, 0));
    hint.hidden =
      rows.length === 0 ||
      asTable ||
      !app.may('reservations:create') ||
      [...hosts.values()].some(host => host.claims.some(claim => claim.mine));
    if (rows.length === 0 && loaded) fill(notice, h('p', {class: 'box'}, filter ? t('noHostsMatch') : t('noHosts')));
    redraw();
    if (asTable) writeTable();
  }

  // Facts under the pointer or the cursor.
  function factsOf(host, at, claim) {
    if (claim) {
      const mine = claim.mine ? view.nameOf(claim) : null,
        title = claim.name || mine?.name;
      return [
        h(
          'strong',
          {},
          claim.maintenance ? t('maintenanceUntil', {end: when(claim.end)}) : title ? named(title) : t(claim.mine ? 'yours' : 'others'),
        ),
        facts([
          [t('reason'), claim.maintenance && title ? named(title) : null],
          [t('host'), named(host.name)],
          [t('time'), span(claim.start, claim.end)],
          [t('duration'), length(claim.end - claim.start)],
          [
            t('kind'),
            claim.kind === 'instance'
              ? t('instancesShare', {count: claim.instances || 1, share: Math.round(claim.share * 100)})
              : t('wholeHost'),
          ],
          [t('status'), claim.status || mine?.status ? t(`status_${claim.status || mine.status}`) : null],
          [t('project'), claim.project && app.may('reservations:list_all') ? app.project(claim.project) : null],
        ]),
      ];
    }
    const about = host.facts,
      until = freeUntil(host, at);
    return [
      h('strong', {}, named(host.name)),
      facts([
        [t('now'), stateText(host)],
        [t('reason'), about?.problem || null],
        [
          t('free'),
          at && usable(host) && at >= now() - HOUR
            ? until === Infinity
              ? t('freeFrom', {start: when(at)})
              : t('freeBetween', {span: span(at, until)})
            : null,
        ],
        [t('zone'), about?.zone],
        [t('aggregates'), about?.aggregates?.join(', ')],
        ...Object.entries(about?.properties || {})
          .slice(0, 8)
          .map(([name, value]) => [name, named(Array.isArray(value) ? value.join(', ') : String(value))]),
      ]),
    ];
  }

  function stateText(host) {
    const about = host.facts,
      closed = maintenanceAt(host, now());
    if (closed) return t('maintenanceUntil', {end: when(closed.end)});
    if (!about) return null;
    const since = about.phase_since ? ` (${t(`phase_${about.phase}`)}, ${ago(Date.parse(about.phase_since) / 1000)})` : '';
    const running = about.instance_count ? t('instances', {count: about.instance_count}) : t('empty');
    const spot = about.preemptible_count ? `, ${t('preemptible', {count: about.preemptible_count})}` : '';
    return `${t(about.reservable ? `state_${about.state}` : 'notReservable')}${since}; ${running}${spot}`;
  }

  function showTip(content, px, py) {
    fill(tip, content);
    tip.hidden = false;
    const {clientWidth: width, clientHeight: height} = tip.parentElement;
    tip.style.left = `${Math.max(4, Math.min(px + 14, width - tip.offsetWidth - 6))}px`;
    tip.style.top = `${py + 18 + tip.offsetHeight > height ? Math.max(4, py - tip.offsetHeight - 10) : py + 18}px`;
  }

  function hover(found, event) {
    const claim = found?.claim || null;
    if (view.hover?.claim !== claim) redraw();
    view.hover = found;
    if (!found?.row?.host) {
      tip.hidden = true;
      return;
    }
    const frame = picture.getBoundingClientRect();
    showTip(factsOf(found.row.host, found.name ? 0 : found.at, claim), event.clientX - frame.left, event.clientY - frame.top);
  }

  // Booking and changes.
  function openPanel(title, content, closed) {
    const shut = () => {
      panel.hidden = true;
      view.offer = null;
      view.blocked = [];
      view.chosen = '';
      closed?.();
      layout();
    };
    fill(
      panel,
      h(
        'header',
        {},
        h('h2', {tabindex: '-1'}, title),
        button(
          '×',
          () => {
            shut();
            picture.focus();
          },
          {'aria-label': t('close'), class: 'plain'},
        ),
      ),
      content(shut),
    );
    panel.hidden = false;
    hint.hidden = true;
    panel.querySelector('h2').focus();
    panel.onkeydown = event => {
      if (event.key === 'Escape') {
        shut();
        picture.focus();
      }
    };
    layout();
  }

  // showPlan draws an offer, or what is in the way of one, and shows it.
  function showPlan(offer, blocked) {
    view.offer = offer;
    view.blocked = blocked || [];
    const at = offer || view.blocked[0];
    if (at && (at.start > end(view) || at.end < view.start)) moveTo(at.start - (end(view) - view.start) / 4);
    redraw();
  }

  function book(drawn) {
    if (drawn && drawn.start < now()) drawn = {...drawn, start: now(), end: Math.max(drawn.end, now() + 15 * MINUTE)};
    const all = drawn
      ? view.rows
          .slice(drawn.first, drawn.last + 1)
          .filter(row => row.host)
          .map(row => row.host)
      : [];
    openPanel(t('newReservation'), shut =>
      bookingForm(app, {
        hosts: all.filter(usable).map(host => host.name),
        all: all.map(host => host.name),
        start: drawn?.start,
        duration: drawn ? drawn.end - drawn.start : 0,
        filter,
        plan: showPlan,
        done: made => {
          shut();
          picture.focus();
          toast(
            t(made.maintenance ? 'planned' : 'booked', {
              name: made.name,
              span: span(Date.parse(made.start) / 1000, Date.parse(made.end) / 1000),
            }),
          );
          load(true);
        },
      }),
    );
  }

  const mayChange = claim =>
    app.may(claim.maintenance ? 'reservations:maintain' : 'reservations:update') &&
    idOf(claim) !== '' &&
    !['ended', 'canceled', 'failed', 'ending'].includes(claim.status) &&
    claim.end > now();
  const idOf = claim => claim.id || view.nameOf(claim)?.id || '';

  function stretch(claim, until) {
    const id = idOf(claim),
      name = claim.name || view.nameOf(claim)?.name || '';
    view.chosen = id;
    openPanel(t('changeEnd'), shut =>
      changeForm({
        id,
        name,
        end: claim.end,
        until,
        plan: showPlan,
        done: () => {
          shut();
          picture.focus();
          toast(t('endChanged'));
          load(true);
        },
      }),
    );
  }

  function open(claim) {
    const id = idOf(claim);
    if (id) app.go(`/reservation/${id}`);
  }

  function focus(host, at) {
    view.focusClaim = host ? claimAt(host, at) : null;
    redraw();
    if (!host) {
      tip.hidden = true;
      return;
    }
    const content = factsOf(host, at, view.focusClaim),
      row = view.rows[view.cursor.row];
    showTip(content, view.label + (at - view.start) * view.scale, HEAD + row.y - view.scroll + ROW);
    announce(`${when(at)}. ${tip.innerText.replace(/\s*\n\s*/g, ', ')}`);
  }

  function reveal(row) {
    const room = view.height - HEAD;
    if (row.y < view.scroll) picture.scrollTop = row.y;
    else if (row.y + row.height > view.scroll + room) picture.scrollTop = row.y + row.height - room;
    view.scroll = picture.scrollTop;
  }

  const act = {
    hover,
    book,
    open,
    stretch,
    pan,
    zoom,
    redraw,
    focus,
    reveal,
    moveTo,
    showNow,
    mayChange,
    mayBook: () => app.may('reservations:create'),
    clear: () => {
      tip.hidden = true;
      view.offer = null;
      view.blocked = [];
      redraw();
    },
  };
  follow(picture, view, act);
  listen(picture, view, act);

  // The table has what the picture shows, for those who do not see it.
  let tableRows = 100;
  function writeTable() {
    const list = view.rows.filter(row => row.host).map(row => row.host);
    fill(
      rowsTable,
      h('p', {}, t('tableCaption', {span: span(view.start, end(view)), count: list.length})),
      table(
        t('calendar'),
        [t('host'), t('zone'), t('today'), t('reservations')],
        list
          .slice(0, tableRows)
          .map(host => [
            named(host.name),
            host.facts?.zone || '',
            [stateText(host), host.facts?.problem ? h('div', {class: 'soft'}, host.facts.problem) : null],
            claimList(host),
          ]),
        t('noHosts'),
      ),
      list.length > tableRows
        ? button(t('more'), () => {
            tableRows += 200;
            writeTable();
          })
        : null,
    );
  }

  function claimList(host) {
    const list = host.claims.filter(claim => claim.end > view.start && claim.start < end(view));
    return list.length === 0
      ? t('freeThroughout')
      : h(
          'ul',
          {class: 'plain-list'},
          list.slice(0, 50).map(claim => {
            const id = idOf(claim),
              name = claim.name || view.nameOf(claim)?.name;
            const text = claim.maintenance
              ? [t('maintenance'), name ? [': ', named(name)] : '']
              : name
                ? named(name)
                : t(claim.mine ? 'yours' : 'others');
            return h('li', {}, span(claim.start, claim.end), ': ', id ? h('a', {href: `#/reservation/${id}`}, text) : text);
          }),
        );
  }

  const theme = () => {
    view.colors = colors();
    redraw();
  };
  addEventListener('theme', theme, {signal: ending.signal});
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', theme, {signal: ending.signal});

  view.start = start;
  layout();
  settled();
  load();
  app.calendar = {view, hosts, zoom, redraw};
  return () => {
    ending.abort();
    reading?.abort();
    close();
    sized.disconnect();
    clearInterval(tick);
    clearTimeout(settling);
    clearTimeout(waiting);
  };
}

// legend explains the signs and the patterns.
function legend() {
  const item = (kind, text) => h('li', {}, h('span', {class: `key ${kind}`, 'aria-hidden': 'true'}), text);
  return h(
    'details',
    {open: innerWidth > 900},
    h('summary', {}, t('legend')),
    h(
      'ul',
      {},
      item('mine', t('legendMine')),
      item('other', t('legendOther')),
      item('maintenance', t('legendMaintenance')),
      item('closed', t('legendClosed')),
      item('ring', t('legendFree')),
      item('disk', t('legendUsed')),
      item('dotted', t('legendPreemptible')),
      item('moon', t('legendAsleep')),
      item('triangle', t('legendWaking')),
      item('strip', t('legendStrip')),
    ),
  );
}
