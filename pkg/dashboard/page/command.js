// SPDX-License-Identifier: Apache-2.0
// The command that books the same as a reservation has.
import {length} from './lengths.js';

// quoted returns a text as one word of a shell. Characters that nobody sees are written as their numbers.
export function quoted(text) {
  if (/^[\w@+:,./][\w@%+=:,./-]*$/.test(text)) return text;
  if (!/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(text)) return `'${text.replaceAll("'", "'\\''")}'`;
  const escaped = one => (one === "'" || one === '\\' ? `\\${one}` : `\\U${one.codePointAt(0).toString(16).padStart(8, '0')}`);
  return `$'${text.replace(/['\\\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escaped)}'`;
}

// words returns the options that have a value, each as a word of the command with its value, or alone if that is true.
const words = options =>
  options
    .filter(([, value]) => value !== undefined && value !== null && value !== '')
    .map(([option, value]) => (value === true ? `--${option}` : `--${option} ${quoted(String(value))}`));

// lasting returns a length as one word of a command: 12h30m.
const lasting = total => length(total).replaceAll(' ', '');

// times returns the options for the time. A start that is over cannot be asked for again, so it is left out.
function times({start, end}, now) {
  const [from, to] = [Date.parse(start) / 1000, Date.parse(end) / 1000];
  return [
    ['start', from > now ? start : ''],
    ['duration', lasting(to - from)],
  ];
}

// written returns a command. Names stand before its options, unless one of them would be taken for an option.
function written(start, names, options) {
  const last = names.some(name => name.startsWith('-')),
    shown = names.map(quoted);
  return [start, ...(last ? [...options, '--', ...shown] : [...shown, ...options])].join(' ');
}

// command returns the command for the terms of a reservation; null if the command line cannot book it. What it cannot
// say is in `lacks`.
export function command(one, now) {
  if (one.maintenance) {
    if (one.hosts.length === 0) return null; // the user may not see them
    const options = words([...times(one, now), ['reason', one.name]]);
    return {text: written('almanac host maintenance', one.hosts, options), lacks: []};
  }
  if (one.kind !== 'host' && one.kind !== 'instance') return null;
  const size = one.resources || {};
  const together = one.together || {};
  const options = words([
    ['quantity', one.quantity],
    ...times(one, now),
    ['properties', one.host_properties ? JSON.stringify(one.host_properties) : ''],
    ['kind', one.kind === 'host' ? '' : one.kind],
    ['vcpus', size.vcpus],
    ['memory-mb', size.memory_mb],
    ['disk-gb', size.disk_gb],
    ['affinity', one.affinity],
    ['together', together.by],
    ['together-rule', together.rule],
    ['apart-from', together.apart_from],
    ['together-values', together.values],
    ['together-preferred', together.required === false || ''],
    ['policy', one.policy],
    ['image', one.image],
    ['on-end', one.on_end],
    ['before-end', lasting(one.before_end)],
  ]);
  const lacks = Object.entries(size.custom || {}).map(([name, amount]) => `${name}=${amount}`);
  return {text: written('almanac reservation create', [one.name], options), lacks};
}

// partText returns what a group asks for with one of its reservations.
const partText = ({kind, quantity, host_properties, resources, affinity, image}) =>
  JSON.stringify({kind, quantity, host_properties, resources, affinity: affinity || undefined, image: image || undefined});

// groupCommands returns the commands that change and delete a group, and the one that books the same; null for that one if
// the command line cannot book a part.
export function groupCommands(group, now) {
  const {id, name, end, reservations} = group,
    [first] = reservations,
    options = () => [
      ...words(times(group, now)),
      ...reservations.map(part => `--part ${quoted(partText(part))}`),
      ...words([
        ['on-end', first.on_end],
        ['before-end', lasting(first.before_end)],
      ]),
    ];
  return {
    change: written('almanac group change', [id], words([['end', end]])),
    remove: written('almanac group delete', [id], []),
    create: reservations.every(part => part.kind === 'host' || part.kind === 'instance') ? written('almanac group create', [name], options()) : null,
  };
}

// serverCommand returns the command that starts a server in a reservation; null if none can be started in it.
export const serverCommand = one =>
  one.maintenance || one.kind === 'address'
    ? null
    : `openstack server create --hint reservation=${one.id} --flavor FLAVOR --image IMAGE NAME`;
