// SPDX-License-Identifier: Apache-2.0
// The calendar's elements: its tools, the picture or the table, the form beside it, and the legend.
import {button, h, problem, remembering} from './view.js';
import {t} from './texts.js';
import {END_OF_PICTURE} from './picture.js';
import {HEAD} from './places.js';
import {ROW, claimAt} from './model.js';
import {zoneName} from './time.js';
import {isLoading, retryAt, trouble} from './calendar-data.js';
import {hostsOfForm} from './calendar-state.js';
import {letters, isKey} from './cursor.js';
import {rangeText, toolsView} from './calendar-tools.js';
import {drawnText, factsOf, freeFacts, hostActions, tableView} from './calendar-facts.js';
import {formView} from './form-view.js';
import {conditionsOf, textOf} from './filter-language.js';
import {filterView} from './filters.js';
import {liveText} from './live.js';

// calendarView returns the whole calendar.
export const calendarView = (state, send, app) =>
  h(
    'div',
    {class: 'calendar'},
    h('h1', {class: 'hidden'}, t('calendar')),
    toolsView(state, send, app),
    filterBox(state, send),
    h('div', {class: `progress${isLoading(state.data) ? ' on' : ''}`, role: 'presentation'}),
    notice(state, send),
    h('div', {class: 'area'}, stage(state, send, app), panel(state, send, app)),
    h('div', {class: 'legend'}, remembered.legend([], legend), status(state)),
    h('p', {class: 'hidden', id: 'keys-help'}, t('keysHelp')),
    state.help ? help(send) : null,
    state.printing ? paper(state, send) : null,
  );

// paper is what a printer gets: the table with all rows. The head of a table is on each sheet, its times are exact, and
// it needs no colors; a picture is as long as the screen.
const paper = (state, send) =>
  h('div', {class: 'print-only'}, h('h2', {}, `${t('almanac')}: ${rangeText(state)} (${zoneName()})`), state.filter ? h('p', {}, filterText(state.filter)) : null, tableView(state, send, null, Infinity));

const filterText = filter => `${t('filter')}: ${conditionsOf(filter)?.map(textOf).join(', ') || filter}`;

const remembered = {filter: remembering(), legend: remembering()};

// filterBox holds the filter. Its editor is made when it is first wanted: it asks for the values of all properties.
function filterBox({filter, editor: edited, filterWanted, data}, send) {
  const refused = data.refused?.field === 'filter' ? data.refused : null,
    open = filter !== '' || Boolean(refused);
  const editor = () =>
    filterView({
      state: edited,
      filter,
      complaint: refused?.message || '',
      id: 'calendar-filter',
      keep: true,
      send: event => send({type: 'filter', event}),
    });
  return remembered.filter([send, filter, edited, refused, filterWanted], () =>
    h(
      'details',
      {class: 'filter-box', open, toggle: event => event.currentTarget.open && send({type: 'filterWanted'})},
      h('summary', {}, t('filter')),
      open || filterWanted ? editor() : null,
    ),
  );
}

// notice tells what the calendar does not know, and why there are no rows.
function notice(state, send) {
  const {data} = state,
    failed = trouble(data) || (data.refused?.field === 'filter' ? null : data.refused);
  const texts = [];
  if (failed) {
    const wait = Math.ceil((retryAt(data) - performance.now()) / 1000);
    texts.push(problem({message: failed.message + (Number.isFinite(wait) && wait > 0 ? ` ${t('againIn', {seconds: wait})}` : '')}, () => send({type: 'again'})));
  }
  if (data.unknownProperties.length) texts.push(h('p', {class: 'box'}, t('unknownProperties', {names: data.unknownProperties.join(', ')})));
  if (data.known && state.rows.length === 0) texts.push(h('p', {class: 'box'}, t(state.search ? 'noHostsFound' : state.filter ? 'noHostsMatch' : 'noHosts')));
  return h('div', {class: 'notice'}, texts);
}

function stage(state, send, app) {
  return h(
    'div',
    {class: 'stage', ref: element => element && observe(element, send)},
    state.asTable ? h('div', {class: 'table-view'}, tableView(state, send, app)) : picture(state, send),
    state.asTable ? null : tip(state, send, app),
    hint(state, app),
  );
}

const observed = new WeakSet();

// observe tells the state how large the stage is, now and after each change: in the next frame, because a view that
// changes the size again while sizes are told is an error of the page.
function observe(element, send) {
  if (observed.has(element)) return;
  observed.add(element);
  const tell = () => {
    if (element.isConnected) send({type: 'resized', width: element.clientWidth, height: element.clientHeight, ratio: Math.min(3, devicePixelRatio || 1)});
  };
  new ResizeObserver(() => requestAnimationFrame(tell)).observe(element);
}

const placeOf = event => {
  const frame = event.currentTarget.getBoundingClientRect();
  return {px: event.clientX - frame.left, py: event.clientY - frame.top};
};

function picture(state, send) {
  const {view} = state;
  const pointer = (mouse, touch) => event => {
    const place = placeOf(event);
    if (event.pointerType === 'touch') send({type: touch, id: event.pointerId, ...place, canceled: event.type === 'pointercancel'});
    else if (mouse) send({type: mouse, ...place, button: event.button});
  };
  return h(
    'div',
    {
      key: 'picture',
      class: 'picture',
      tabindex: '0',
      role: 'application',
      'aria-label': t('pictureLabel'),
      'aria-describedby': 'keys-help',
      'aria-roledescription': t('calendar'),
      'data-hosts': String(state.data.hosts.size),
      'data-claims': String(countsOf(state.data.hosts).all),
      'data-pointer': state.pointer || '',
      ref: element => {
        if (element && Math.abs(element.scrollTop - view.scroll) > 1) element.scrollTop = view.scroll;
      },
      scroll: event => send({type: 'scrolled', scroll: event.currentTarget.scrollTop}),
      pointermove: pointer('hovered', 'slid'),
      pointerleave: pointer('left', 'leftByTouch'),
      pointerdown: event => {
        if (event.pointerType !== 'touch' && event.button === 0) event.currentTarget.setPointerCapture(event.pointerId);
        if (event.pointerType === 'touch' || event.button === 0) pointer('pressed', 'touched')(event);
      },
      pointerup: pointer('released', 'lifted'),
      pointercancel: pointer('givenUp', 'lifted'),
      wheel: event => wheel(event, send),
      keydown: event => keydown(event, state, send),
      focus: event => event.currentTarget.matches(':focus-visible') && send({type: 'focused'}),
      blur: () => send({type: 'blurred'}),
    },
    h('canvas', {'aria-hidden': 'true', width: Math.round(view.width * view.ratio), height: Math.round(view.height * view.ratio)}),
    h('div', {class: 'spacer', ref: element => element && (element.style.height = `${Math.max(0, state.total + HEAD + END_OF_PICTURE - view.height)}px`)}),
  );
}

const counted = new WeakMap();

// countsOf counts the claims of hosts, and those of the project, once for each answer.
function countsOf(hosts) {
  if (!counted.has(hosts)) {
    const claims = [...hosts.values()].flatMap(host => host.claims);
    counted.set(hosts, {all: claims.length, own: claims.filter(claim => claim.mine).length});
  }
  return counted.get(hosts);
}

function wheel(event, send) {
  const at = placeOf(event);
  if (event.ctrlKey || event.metaKey || at.py < HEAD) {
    event.preventDefault();
    send({type: 'zoomed', factor: Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.006), px: at.px});
  } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    event.preventDefault();
    send({type: 'panned', pixels: event.deltaX || event.deltaY});
  }
}

function keydown(event, state, send) {
  if (event.key === 'Escape' && state.gesture) {
    event.preventDefault();
    send({type: 'givenUp'});
    return;
  }
  const key = {key: event.key, shift: event.shiftKey, control: event.ctrlKey, alt: event.altKey, meta: event.metaKey};
  if (!isKey(key)) return;
  event.preventDefault();
  send({type: 'key', ...key});
}

// tip shows the facts at the pointer or at the cursor, or what a drag has chosen.
function tip(state, send, app) {
  const drawn = drawnText(state),
    {view, cursor, hover} = state;
  const row = state.focused ? state.rows[cursor.row] : null;
  if (drawn) return tipAt(state, state.gesture.at, h('strong', {id: 'drawn'}, drawn));
  if (hover?.free) return tipAt(state, hover, freeFacts(state, hover.at));
  if (hover?.pinned) return hostMenu(state, send, app);
  if (hover) return tipAt(state, hover, factsOf(state, {host: hover.row.host, at: hover.name ? 0 : hover.at, claim: hover.claim}, app));
  if (!row?.host || row.y + ROW < view.scroll || row.y > view.scroll + view.height - HEAD) return null;
  const place = {px: view.label + (cursor.at - view.start) * view.scale, py: HEAD + row.y - view.scroll + ROW};
  return tipAt(state, place, factsOf(state, {host: row.host, at: cursor.at, claim: claimAt(row.host, cursor.at)}, app));
}

// hostMenu has the facts of a host whose name was pressed, and what the user may do with it.
function hostMenu(state, send, app) {
  const {host} = state.hover.row,
    keydown = event => event.key === 'Escape' && send({type: 'unpinned'});
  return tipAt(state, state.hover, [factsOf(state, {host, at: 0}, app), hostActions(host, app, send)], {
    class: 'tip pinned',
    id: 'host-menu',
    tabindex: '-1',
    role: 'group',
    'aria-label': host.name,
    keydown,
  });
}

const tipAt = (state, place, content, attributes) =>
  h('div', {class: 'tip', ...attributes, ref: element => element && setBeside(element, state.view, place)}, content);

// setBeside puts the facts beside a place, inside of the stage.
function setBeside(element, {width, height}, {px, py}) {
  element.style.left = `${Math.max(4, Math.min(px + 14, width - element.offsetWidth - 6))}px`;
  element.style.top = `${py + 18 + element.offsetHeight > height ? Math.max(4, py - element.offsetHeight - 10) : py + 18}px`;
}

// hint tells a new user how to book.
function hint(state, app) {
  const hidden = state.rows.length === 0 || state.asTable || state.form || state.gesture || countsOf(state.data.hosts).own || !app.may('reservations:create');
  return hidden ? null : h('p', {class: 'hint'}, t('dragHint'));
}

function panel(state, send, app) {
  if (!state.form) return null;
  return h(
    'aside',
    {class: 'panel', 'aria-label': t('panel'), keydown: event => event.key === 'Escape' && send({type: 'form.close'})},
    formView(state.form, {may: app.may, project: app.project, zone: zoneName(), properties: state.editor.properties, own: () => ownOf(state.data.hosts), fold: fold(state, send)}, send),
  );
}

// ownOf returns the ids and names of the project's reservations in view, in the order of the names.
function ownOf(hosts) {
  const claims = [...hosts.values()].flatMap(host => host.claims).filter(one => one.mine && one.id && !one.maintenance);
  return [...new Map(claims.map(one => [one.id, one.name]))].sort(([, a], [, b]) => a.localeCompare(b));
}

// fold leaves only the rows of the hosts that the form is about, and brings the others back.
function fold(state, send) {
  const folded = state.only !== null,
    offered = state.form.offer !== null,
    useful = hostsOfForm(state).length > 0 && hostsOfForm(state).length < state.data.hosts.size;
  if (!folded && !useful) return null;
  return button(t(folded ? 'allRows' : offered ? 'onlyOffered' : 'onlyInTheWay'), () => send({type: 'folded', on: !folded}), {class: 'plain', id: 'fold-rows'});
}

// status tells whether changes arrive, and how old the picture is.
const status = state => h('span', {class: `live${state.live.on ? ' on' : ''}`, id: 'live'}, liveText(state.live, performance.now()));

// help lists the keys.
const help = send =>
  h(
    'dialog',
    {
      class: 'help',
      'aria-labelledby': 'help-title',
      ref: element => element && !element.open && element.showModal(),
      close: () => send({type: 'helped'}),
    },
    h('h2', {id: 'help-title'}, t('help')),
    h(
      'dl',
      {class: 'facts'},
      letters.map(letter => h('div', {key: letter}, h('dt', {}, h('kbd', {}, letter)), h('dd', {}, t(`key_${letter === '?' ? 'help' : letter === '/' ? 'search' : letter}`)))),
    ),
    h('p', {class: 'soft'}, t('keysHelp')),
    h('div', {class: 'actions'}, button(t('close'), event => event.currentTarget.closest('dialog').close())),
  );

// legend explains the signs and the patterns.
function legend() {
  const item = (kind, text) => h('li', {}, h('span', {class: `key ${kind}`, 'aria-hidden': 'true'}), text);
  return h(
    'details',
    {ref: element => element && !element.dataset.opened && (element.dataset.opened = 'yes') && (element.open = innerWidth > 900)},
    h('summary', {}, t('legend')),
    h(
      'ul',
      {},
      item('free', t('legendFreeRow')),
      item('mine', t('legendMine')),
      item('other', t('legendOther')),
      item('maintenance', t('legendMaintenance')),
      item('closed', t('legendClosed')),
      item('unknown', t('legendUnknown')),
      item('ring', t('legendFree')),
      item('disk', t('legendUsed')),
      item('dotted', t('legendPreemptible')),
      item('moon', t('legendAsleep')),
      item('triangle', t('legendWaking')),
      item('strip', t('legendStrip')),
    ),
  );
}
