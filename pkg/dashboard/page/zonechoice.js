// SPDX-License-Identifier: Apache-2.0
// The choice of the second zone of the time axis.
import {select} from './view.js';
import {t} from './texts.js';
import {isUTC, secondChoice, setSecondZone, zoneNames} from './zones.js';

// secondZoneSelect returns the list of zones; `changed` is called after another one was chosen.
export function secondZoneSelect(changed) {
  const other = isUTC() ? ['local', t('localTime')] : ['utc', t('utc')],
    chosen = secondChoice(),
    first = [['', t('noSecondZone')], other],
    rest = [...new Set([chosen, ...zoneNames()])].filter(name => name.includes('/')).map(name => [name, name]);
  const shown = [...first, ...rest].some(([value]) => value === chosen) ? chosen : '';
  const choose = value => {
    setSecondZone(value);
    changed();
  };
  return select([...first, ...rest], shown, choose, {'aria-label': t('secondZone'), title: t('secondZone'), id: 'second-zone'});
}
