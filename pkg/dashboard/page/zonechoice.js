// SPDX-License-Identifier: Apache-2.0
// The choice of the second zone of the time axis.
import {h, unchanged} from './view.js';
import {t} from './texts.js';
import {isUTC, secondChoice, setSecondZone, zoneNames} from './zones.js';

const option = ([value, text]) => h('option', {key: value, value}, text);

let all = null; // the zones of the browser as options, made once, since the calendar is drawn with each move

function zones() {
  if (!all) {
    const names = zoneNames().filter(name => name.includes('/')),
      options = names.map(name => option([name, name]));
    all = {names, group: unchanged(h('optgroup', {key: 'zones', label: t('zones')}, options))};
  }
  return all;
}

// secondZoneSelect returns the list of zones; `changed` is called after another one was chosen.
export function secondZoneSelect(changed) {
  const chosen = secondChoice(),
    {names, group} = zones(),
    first = [['', t('noSecondZone')], isUTC() ? ['local', t('localTime')] : ['utc', t('utc')]];
  if (chosen.includes('/') && !names.includes(chosen)) first.push([chosen, chosen]); // an older name, such as Asia/Calcutta
  const offered = names.includes(chosen) || first.some(([value]) => value === chosen);
  return h(
    'select',
    {
      value: offered ? chosen : '',
      change: event => {
        setSecondZone(event.currentTarget.value);
        changed();
      },
      'aria-label': t('secondZone'),
      title: t('secondZone'),
      id: 'second-zone',
    },
    first.map(option),
    group,
  );
}
