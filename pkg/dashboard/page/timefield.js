// SPDX-License-Identifier: Apache-2.0
// The field for a time: a day, and a time in 24 hours, with the zone in which they are read. <input type=datetime-local>
// would follow the browser's language, which cuts off AM and PM, and cannot say which half of October's night is meant.
import {h} from './view.js';
import {t} from './texts.js';
import {length} from './lengths.js';
import {changes, shownZone, zoneAt} from './zones.js';
import {choices, chosen, clockText, edited, halves, isUnread, leave, problemOf, shownField} from './timevalue.js';

// timeField returns the field of a value of timevalue.js; `change` is called with the next value.
export function timeField({label, id, value, zone = shownZone(), change, hint}) {
  const [date, clock] = halves(shownField(value, zone)),
    complaint = value.left ? problemOf(value) : '',
    both = choices(value, zone);
  const about = [`${id}-zone`, complaint && `${id}-complaint`, value.moved && `${id}-moved`].filter(Boolean).join(' '),
    wrong = complaint ? 'true' : undefined;
  const typed = (day, time) => {
    const next = edited(value, `${day}T${time}`, zone);
    if (next !== value) change(next);
  };
  const gone = event => {
    if (!event.currentTarget.contains(event.relatedTarget) && value.text !== null) change(leave(value));
  };
  return h(
    'div',
    {class: 'field', role: 'group', 'aria-labelledby': `${id}-label`, focusout: gone},
    h('label', {for: id, id: `${id}-label`}, label),
    h(
      'div',
      {class: 'moment'},
      h('input', {
        type: 'date',
        id,
        name: id,
        min: '1970-01-01',
        max: '9999-12-31',
        value: date,
        'aria-describedby': about,
        'aria-invalid': wrong,
        input: event => typed(event.currentTarget.value, clock),
      }),
      h('input', {
        type: 'text',
        id: `${id}-clock`,
        name: `${id}-clock`,
        inputmode: 'numeric',
        autocomplete: 'off',
        placeholder: t('clockHint'),
        value: clock,
        'aria-label': t('clockOf', {field: label}),
        'aria-describedby': about,
        'aria-invalid': wrong,
        input: event => typed(date, event.currentTarget.value),
      }),
    ),
    h('small', {id: `${id}-zone`}, [zoneText(value, zone), hint].filter(Boolean).join(' · ')),
    both && halfChoice(id, value, both, zone, change),
    value.moved && h('small', {id: `${id}-moved`, role: 'status'}, t('timeMoved', {time: clockText(value.at, zone)})),
    complaint && h('small', {id: `${id}-complaint`, class: 'complaint', role: 'alert'}, complaint),
  );
}

// zoneText names the zone, and in the night of a change the time that it has.
const zoneText = (value, zone) => (isUnread(value) || zone === 'UTC' || !changes(value.at, zone) ? zone : `${zone}, ${zoneAt(value.at, zone)}`);

// halfChoice lets the user say which of two instants is meant.
const halfChoice = (id, value, both, zone, change) =>
  h(
    'fieldset',
    {class: 'twice'},
    h('legend', {}, t('timeTwice')),
    both.map(({at, name}, i) =>
      h(
        'label',
        {key: name, class: 'check'},
        h('input', {
          type: 'radio',
          name: `${id}-half`,
          value: name,
          checked: Math.abs(at - value.at) < 1,
          change: () => change(chosen(value, at)),
        }),
        h('span', {}, `${clockText(at, zone)} ${name}${i ? `, ${t('afterFirst', {length: length(at - both[0].at)})}` : ''}`),
      ),
    ),
  );
