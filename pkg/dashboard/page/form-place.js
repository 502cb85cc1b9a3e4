// SPDX-License-Identifier: Apache-2.0
// The place of a booking: how its hosts lie to each other by the values of a property, and apart from what.
import {check, field, h, select} from './view.js';
import {t} from './texts.js';

const rules = ['same', 'spread', 'fewest', 'none'];

// fieldsOfPlace returns the fields of a place from the rule of a reservation, or those of none.
export const fieldsOfPlace = ({by = '', rule = by ? 'none' : 'same', values = 2, required = true, apart_from: apart = []} = {}) => ({
  placeBy: by,
  placeRule: rule,
  placeValues: String(values),
  placeRequired: required,
  apartFrom: apart.join(' '), // ids
});

// placeOf returns the rule as the API has it; null for a booking that may lie anywhere.
export function placeOf(fields) {
  const rule = fields.placeRule;
  if (!fields.placeBy) return null;
  return {
    by: fields.placeBy,
    ...(rule !== 'none' && {rule}),
    ...(rule === 'spread' && {values: Number(fields.placeValues)}),
    ...(rule !== 'fewest' && {required: fields.placeRequired}),
    ...(fields.apartFrom && {apart_from: fields.apartFrom.split(' ')}),
  };
}

// placeComplaint returns what is wrong with a place, as {field, message}; null for nothing.
export function placeComplaint({placeBy, placeRule, placeValues, apartFrom}) {
  if (!placeBy) return null;
  if (placeRule === 'none' && !apartFrom) return {field: 'placeRule', message: t('placeEmpty')};
  if (placeRule === 'spread' && !/^([2-9]|[1-9]\d+)$/.test(placeValues.trim())) return {field: 'placeValues', message: t('placeValuesWrong')};
  return null;
}

const names = ['name', 'hypervisor_hostname'];

// isLevel reports whether a property can be the level of a place: it has one value on each host, and is no name or size of one.
const isLevel = ({name, type, built_in: builtIn}) => !names.includes(name) && (type === 'string' || (type === 'number' && !builtIn));

// placeView returns the folded line of the place. `own` returns the reservations in view that the booking can lie apart from,
// as pairs of an id and a name.
export function placeView(form, {properties, own = () => []}, edit, number) {
  const {fields} = form,
    {placeBy, placeRule, apartFrom} = fields,
    levels = properties.filter(isLevel).map(one => one.name),
    known = list => list.map(one => [one, one]);
  const others = placeBy ? own() : [],
    kept = apartFrom && !others.some(([id]) => id === apartFrom) ? [[apartFrom, apartFrom]] : [];
  return h(
    'details',
    {class: 'more', id: 'form-place', key: 'place', open: placeBy !== '' || undefined},
    h('summary', {}, t('place')),
    field(
      t('placeBy'),
      'form-placeBy',
      select([['', t('anywhere')], ...known([...new Set([...levels, ...(placeBy ? [placeBy] : [])])])], placeBy, value => edit('placeBy', value)),
    ),
    placeBy && [
      h(
        'div',
        {class: placeRule === 'spread' ? 'halves' : null, key: 'rule'},
        field(t('placeRule'), 'form-placeRule', select(rules.map(one => [one, t(`place_${one}`)]), placeRule, value => edit('placeRule', value))),
        placeRule === 'spread' && number(form, 'placeValues', t('placeValues'), edit, {min: '2'}),
      ),
      field(t('apartFrom'), 'form-apartFrom', select([['', t('none')], ...kept, ...others], apartFrom, value => edit('apartFrom', value))),
      placeRule !== 'fewest' && check('form-placeRequired', t('placeRequired'), fields.placeRequired, value => edit('placeRequired', value)),
    ],
  );
}
