// SPDX-License-Identifier: Apache-2.0
// The tools above the calendar: which time it shows, and how. A calendar that scrolls or shifts draws nothing of them but
// the range.
import {button, h, remembering, select, together} from './view.js';
import {t} from './texts.js';
import {end} from './places.js';
import {groupings} from './model.js';
import {isUTC, setUTC, span, zoneName} from './time.js';
import {secondChoice} from './zones.js';
import {ranges} from './calendar-window.js';
import {secondZoneSelect} from './zonechoice.js';

// rangeText is the time that the calendar shows, in words.
export const rangeText = ({view}) => span(view.start, view.width ? end(view) : view.start + view.span);

const remembered = {moves: remembering(), choices: remembering()};

// toolsView returns the tools.
export function toolsView(state, send, app) {
  const {view, tools: open, search, group, data} = state,
    room = view.width - view.label,
    may = app.may('reservations:create');
  return h(
    'div',
    {class: `tools${open ? ' open' : ''}`},
    remembered.moves([send, view.span, room], () => moves(view.span, room, send)),
    h('h2', {class: 'range'}, rangeText(state), ' ', h('small', {id: 'zone-name'}, zoneName())),
    button(t('moreTools'), () => send({type: 'tools'}), {class: 'plain fold', 'aria-expanded': String(open)}),
    may ? button(t('book'), () => send({type: 'booked'}), {class: 'main', id: 'book'}) : null,
    remembered.choices([send, search, group, data.hosts, state.asTable, zoneName(), secondChoice()], () => choices(state, send)),
  );
}

// moves shift the calendar and choose how much time it shows; `room` is the width of that time in pixels.
function moves(shownSpan, room, send) {
  const shift = by => () => send({type: 'panned', pixels: room * by}),
    small = (text, name, click) => button(text, click, {'aria-label': t(name), title: t(name)});
  return together(
    h(
      'div',
      {class: 'buttons'},
      small('‹', 'earlier', shift(-0.8)),
      button(t('today'), () => send({type: 'now'}), {id: 'today'}),
      small('›', 'later', shift(0.8)),
    ),
    h(
      'div',
      {class: 'buttons', role: 'group', 'aria-label': t('range')},
      Object.entries(ranges).map(([name, width]) =>
        button(t(name), () => send({type: 'ranged', name}), {
          'data-range': name,
          'aria-pressed': String(Math.abs(width / shownSpan - 1) < 0.02),
        }),
      ),
    ),
    h(
      'div',
      {class: 'buttons zoom'},
      small('+', 'zoomIn', () => send({type: 'zoomed', factor: 1 / 1.5})),
      small('−', 'zoomOut', () => send({type: 'zoomed', factor: 1.5})),
    ),
  );
}

// choices tell what the calendar shows, and how.
const choices = (state, send) =>
  h(
    'div',
    {class: 'buttons end'},
    h('input', {
      type: 'search',
      id: 'search',
      value: state.search,
      placeholder: t('searchCalendar'),
      'aria-label': t('searchCalendar'),
      input: event => send({type: 'searched', text: event.currentTarget.value}),
    }),
    select(groups(state), state.group, group => send({type: 'grouped', group}), {'aria-label': t('groupBy')}),
    select(
      [
        ['local', t('localTime')],
        ['utc', t('utc')],
      ],
      isUTC() ? 'utc' : 'local',
      value => {
        setUTC(value === 'utc');
        send({type: 'zoned'});
      },
      {'aria-label': t('timeZone'), title: zoneName(), id: 'zone'},
    ),
    secondZoneSelect(() => send({type: 'zoned'})),
    button(t('table'), () => send({type: 'tabled'}), {'aria-pressed': String(state.asTable), class: 'plain', id: 'table-switch'}),
    button('?', () => send({type: 'helped'}), {class: 'plain', id: 'help', 'aria-label': t('help'), title: t('help')}),
  );

const groups = ({data}) => [
  ['', t('noGroups')],
  ['zone', t('zone')],
  ['aggregates', t('aggregates')],
  ...groupings(data.hosts.values()).map(name => [name, name]),
];
