// SPDX-License-Identifier: Apache-2.0
// The form of a booking, and the change of an end: the offer comes before the click, and a refusal with what would be
// possible instead.
import {button, field, fill, h, named, select} from './dom.js';
import {t} from './texts.js';
import {Refused, get, key, patch, post} from './client.js';
import {filterEditor, joined} from './filters.js';
import {DAY, HOUR, field as timeField, iso, length, now, readField, readLength, readable, seconds, span, when} from './time.js';

const durations = [HOUR, 4 * HOUR, DAY, 7 * DAY];

// bookingForm returns the form. `hosts` are the selected hosts that can be reserved, and `all` all selected ones; `plan`
// draws an offer or what blocks it; `done` is called with the reservation.
export function bookingForm(app, {hosts, all, start, duration, filter, plan, done}) {
  const once = key(),
    defaultName = t('defaultName', {start: when(start || now())});
  const name = h('input', {type: 'text', maxlength: '255', required: true, value: defaultName, name: 'name', autocomplete: 'off'});
  const quantity = h('input', {
    type: 'number',
    min: '1',
    max: '100000',
    value: String(hosts.length || 1),
    required: true,
    name: 'quantity',
    inputmode: 'numeric',
  });
  const kinds = [
    ['host', t('wholeHosts')],
    ['instance', t('instanceSized')],
    ...(app.may('reservations:maintain') ? [['maintenance', t('maintenance')]] : []),
  ];
  const kind = select(
    kinds,
    'host',
    () => {
      kindChanged();
      ask();
    },
    {name: 'kind'},
  );
  const maintained = h('input', {type: 'text', value: all.join(' '), name: 'maintained', autocomplete: 'off'}),
    maintainedField = field(t('hosts'), maintained, t('maintainedHint'));
  const vcpus = h('input', {type: 'number', min: '1', value: '4', name: 'vcpus'}),
    memory = h('input', {type: 'number', min: '1', value: '8192', name: 'memory'}),
    disk = h('input', {type: 'number', min: '0', value: '20', name: 'disk'});
  const sizes = h(
    'fieldset',
    {class: 'thirds', hidden: true},
    h('legend', {}, t('sizeOfOne')),
    field(t('vcpus'), vcpus),
    field(t('memoryMB'), memory),
    field(t('diskGB'), disk),
  );
  const mode = select(
    [
      ['now', t('startNow')],
      ['at', t('startAt')],
      ['window', t('startWithin')],
    ],
    start && start > now() + 60 ? 'at' : 'now',
    () => {
      modeChanged();
      ask();
    },
    {name: 'mode'},
  );
  const begin = h('input', {type: 'datetime-local', value: timeField(start && start > now() ? start : now() + HOUR), name: 'start'});
  const deadline = h('input', {type: 'datetime-local', value: timeField(now() + 2 * DAY), name: 'deadline'});
  const lasts = h('input', {type: 'text', value: length(duration || 2 * HOUR), required: true, name: 'duration', autocomplete: 'off'});
  const beginField = field(t('starts'), begin),
    deadlineField = field(t('deadline'), deadline, t('deadlineHint'));
  const only = h('input', {type: 'checkbox', checked: hosts.length > 0, id: 'only-these'});
  const editor = filterEditor(filter, ask, {keep: false});
  const answer = h('div', {class: 'answer', role: 'status', 'aria-live': 'polite'});
  const submit = h('button', {class: 'main', id: 'confirm'}, t('bookIt'));
  const nameField = field(t('name'), name),
    quantityField = field(t('quantity'), quantity);
  const onlyBox = hosts.length
    ? h(
        'p',
        {class: 'check'},
        only,
        h('label', {for: 'only-these'}, t('onlyThese', {hosts: hosts.slice(0, 4).join(', ') + (hosts.length > 4 ? ' …' : '')})),
      )
    : null;
  const which = h('details', {class: 'more', open: filter !== ''}, h('summary', {}, t('whichHosts')), editor.element);

  function modeChanged() {
    beginField.hidden = mode.value !== 'at';
    deadlineField.hidden = mode.value !== 'window';
  }
  modeChanged();

  // kindChanged shows the fields of the kind. The name of maintenance is its reason.
  function kindChanged() {
    const maintenance = kind.value === 'maintenance';
    sizes.hidden = kind.value !== 'instance';
    maintainedField.hidden = !maintenance;
    for (const part of [quantityField, onlyBox, which]) if (part) part.hidden = maintenance;
    nameField.querySelector('label').textContent = t(maintenance ? 'reason' : 'name');
    if (name.value === defaultName || name.value === '') name.value = maintenance ? '' : defaultName;
    submit.textContent = t(maintenance ? 'planIt' : 'bookIt');
  }
  kindChanged();

  // request returns the body of the booking, or null with a message at the field that is wrong.
  function request() {
    const seconds = readLength(lasts.value);
    lasts.setCustomValidity(Number.isFinite(seconds) && seconds > 0 ? '' : t('durationWrong'));
    if (!lasts.validity.valid || !quantity.validity.valid || !name.value.trim()) return null;
    const body = {name: name.value, duration: seconds};
    if (mode.value === 'at') {
      if (!begin.value) return null;
      body.start_time = iso(readField(begin.value));
    } else if (mode.value === 'window') {
      if (!deadline.value) return null;
      body.end_time = iso(readField(deadline.value));
    }
    if (kind.value === 'maintenance') {
      const names = maintained.value.split(/[\s,]+/).filter(Boolean);
      return names.length ? {...body, maintenance: true, hosts: names} : null;
    }
    Object.assign(body, {kind: kind.value, quantity: Number(quantity.value)});
    if (kind.value === 'instance')
      body.resources = {vcpus: Number(vcpus.value), memory_mb: Number(memory.value), disk_gb: Number(disk.value)};
    let rule = editor.value();
    if (only.checked && hosts.length) rule = joined(rule, hosts.length === 1 ? ['=', '$name', hosts[0]] : ['in', '$name', ...hosts]);
    if (rule) body.host_properties = parsed(rule);
    return body;
  }

  // missing names what the form lacks for an offer.
  function missing() {
    if (lasts.validationMessage) return lasts.validationMessage;
    if (!name.value.trim()) return t(kind.value === 'maintenance' ? 'needsReason' : 'needsName');
    return t('incomplete');
  }

  let timer, asking;
  // ask shows the offer for what the form contains.
  function ask() {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const body = request();
      if (!body) {
        fill(answer, h('p', {class: 'soft'}, missing()));
        plan(null);
        return;
      }
      asking?.abort();
      const mine = (asking = new AbortController());
      try {
        const {offer} = await post('v1/reservations', body, {query: {dry_run: true}, signal: mine.signal});
        if (mine.signal.aborted) return;
        editor.fail('');
        showOffer(offer, body);
      } catch (error) {
        if (error.name !== 'AbortError') showRefusal(error, body);
      }
    }, 250);
  }

  function showOffer(offer, body) {
    const from = seconds(offer.start),
      to = seconds(offer.end);
    submit.disabled = false;
    plan({start: from, end: to, hosts: offer.hosts || []});
    fill(
      answer,
      h(
        'div',
        {class: 'box good', id: 'offer'},
        h('strong', {}, t('offer')),
        h('p', {}, span(from, to)),
        h(
          'p',
          {},
          t('offerHosts', {count: offer.quantity, matched: offer.matched}),
          offer.hosts?.length ? [': ', named(offer.hosts.join(', '))] : '',
        ),
        offer.delayed_by_boot ? h('p', {}, t('delayedByBoot')) : null,
      ),
      toMove(offer.servers || []),
      h('div', {class: 'windows'}),
    );
    if (!body.maintenance) windows(body);
  }

  // toMove lists the servers for which maintenance would wait.
  function toMove(servers) {
    return servers.length
      ? h(
          'div',
          {class: 'box', id: 'to-move'},
          h('p', {}, t('toMove', {count: servers.length})),
          h(
            'ul',
            {class: 'plain-list'},
            servers
              .slice(0, 50)
              .map(one => h('li', {}, named(one.host), ': ', named(one.name || one.id), ` (${one.status}), `, app.project(one.project_id))),
          ),
        )
      : null;
  }

  // windows lists when the same would be free too.
  async function windows(body) {
    const list = answer.querySelector('.windows');
    try {
      const found = await get('v1/availability', {
        duration: body.duration,
        quantity: body.quantity,
        host_properties: body.host_properties && JSON.stringify(body.host_properties),
        end: iso(now() + 14 * DAY),
      });
      if (body.kind === 'host' && found.windows.length && list) {
        fill(
          list,
          h('h3', {}, t('alsoFree')),
          h(
            'ul',
            {class: 'choices'},
            found.windows.slice(0, 4).map(window =>
              h(
                'li',
                {},
                button(t('windowFrom', {start: when(seconds(window.start)), count: window.free}), () => setStart(seconds(window.start)), {
                  class: 'choice',
                }),
              ),
            ),
          ),
        );
      }
    } catch {
      /* the offer stands without this list */
    }
  }

  function setStart(at) {
    if (at <= now() + 60) mode.value = 'now';
    else {
      mode.value = 'at';
      begin.value = timeField(Math.ceil(at / 60) * 60);
    }
    modeChanged();
    ask();
  }

  function showRefusal(error, body) {
    const refusal = error.refusal;
    submit.disabled = !error.passes;
    plan(
      null,
      (refusal?.blocked_by || []).map(block => ({host: block.host, start: seconds(block.start), end: seconds(block.end)})),
    );
    if (error.field === 'host_properties') editor.fail(error.message);
    const choices = error.passes ? [button(t('tryAgain'), ask, {class: 'choice', id: 'try-again'})] : [];
    if (refusal?.earliest_start) {
      const at = seconds(refusal.earliest_start);
      choices.push(button(t('startThen', {start: when(at)}), () => setStart(at), {class: 'choice', id: 'take-earliest'}));
    }
    if (refusal && refusal.largest_quantity > 0 && refusal.largest_quantity < body.quantity) {
      choices.push(
        button(
          t('takeFewer', {count: refusal.largest_quantity}),
          () => {
            quantity.value = String(refusal.largest_quantity);
            only.checked = false;
            ask();
          },
          {class: 'choice', id: 'take-fewer'},
        ),
      );
    }
    fill(
      answer,
      h(
        'div',
        {class: 'box bad', id: 'refusal'},
        h('strong', {}, t(refusal ? 'refused' : error.passes ? 'noAnswer' : 'wrong')),
        h('p', {}, readable(error.message)),
        choices.length ? [refusal ? h('p', {}, t('instead')) : null, h('div', {class: 'choices'}, choices)] : null,
        refusal?.blocked_by?.length
          ? h(
              'details',
              {},
              h('summary', {}, t('inTheWay', {count: refusal.blocked_by.length})),
              h(
                'ul',
                {class: 'plain-list'},
                refusal.blocked_by.slice(0, 20).map(block =>
                  h(
                    'li',
                    {},
                    named(block.host),
                    ': ',
                    span(seconds(block.start), seconds(block.end)),
                    (block.reservations || []).map(one => [' · ', h('a', {href: `#/reservation/${one.id}`}, named(one.name))]),
                  ),
                ),
              ),
            )
          : null,
      ),
    );
  }

  const form = h(
    'form',
    {
      class: 'booking',
      input: ask,
      change: ask,
      submit: async event => {
        event.preventDefault();
        const body = request();
        if (!body) {
          form.reportValidity();
          return;
        }
        submit.disabled = true;
        try {
          done(await post('v1/reservations', body, {headers: {'Idempotency-Key': once + (await digest(body))}}));
        } catch (error) {
          if (!(error instanceof Refused)) throw error;
          showRefusal(error, body);
        }
      },
    },
    h(
      'div',
      {class: 'fields'},
      nameField,
      h('div', {class: 'halves'}, field(t('kind'), kind), quantityField),
      maintainedField,
      sizes,
      h('div', {class: 'halves'}, field(t('duration'), lasts, t('durationHint')), field(t('begins'), mode)),
      h(
        'div',
        {class: 'choices small'},
        durations.map(seconds =>
          button(
            length(seconds),
            () => {
              lasts.value = length(seconds);
              ask();
            },
            {class: 'choice'},
          ),
        ),
      ),
      beginField,
      deadlineField,
      onlyBox,
      which,
    ),
    h('div', {class: 'foot'}, answer, h('div', {class: 'actions'}, submit)),
  );
  ask();
  return form;
}

// parsed returns a filter as the API stores it; the API explains what is wrong with one that cannot be read.
function parsed(rule) {
  try {
    return JSON.parse(rule);
  } catch {
    return rule;
  }
}

// digest returns a number of a body, so that another body has another Idempotency-Key.
function digest(body) {
  let sum = 0;
  for (const letter of JSON.stringify(body)) sum = (sum * 31 + letter.codePointAt(0)) >>> 0;
  return `-${sum.toString(16)}`;
}

// changeForm asks whether a reservation shall end at another time.
export function changeForm({id, name, end, until, plan, done}) {
  const at = h('input', {
    type: 'datetime-local',
    value: timeField(until),
    name: 'until',
    change: () => {
      until = readField(at.value);
      ask();
    },
  });
  const answer = h('div', {class: 'answer', role: 'status', 'aria-live': 'polite'});
  const submit = h('button', {class: 'main', id: 'confirm', disabled: true}, t(until > end ? 'extend' : 'shorten'));

  async function ask() {
    submit.disabled = true;
    submit.textContent = t(until > end ? 'extend' : 'shorten');
    try {
      const {offer} = await patch(`v1/reservations/${id}`, {end_time: iso(until)}, {dry_run: true});
      const to = seconds(offer.end);
      submit.disabled = false;
      plan({start: Math.min(end, to), end: Math.max(end, to), hosts: offer.hosts || []});
      fill(
        answer,
        h(
          'div',
          {class: 'box good', id: 'offer'},
          h('strong', {}, t(to > end ? 'longer' : 'shorter', {length: length(Math.abs(to - end))})),
          h('p', {}, span(seconds(offer.start), to)),
        ),
      );
    } catch (error) {
      const blocks = (error.refusal?.blocked_by || []).map(block => ({
        host: block.host,
        start: seconds(block.start),
        end: seconds(block.end),
      }));
      plan(null, blocks);
      const latest = error.refusal?.latest_end ? seconds(error.refusal.latest_end) : null;
      fill(
        answer,
        h(
          'div',
          {class: 'box bad', id: 'refusal'},
          h('strong', {}, t('refused')),
          h('p', {}, readable(error.message)),
          latest
            ? h(
                'div',
                {class: 'choices'},
                button(
                  t('untilThen', {end: when(latest)}),
                  () => {
                    until = latest;
                    at.value = timeField(latest);
                    ask();
                  },
                  {class: 'choice', id: 'take-until'},
                ),
              )
            : null,
        ),
      );
    }
  }
  ask();
  return h(
    'form',
    {
      submit: async event => {
        event.preventDefault();
        submit.disabled = true;
        try {
          await patch(`v1/reservations/${id}`, {end_time: iso(until)});
          done();
        } catch (error) {
          fill(answer, h('p', {class: 'box bad'}, error.message));
        }
      },
    },
    h('p', {}, named(name)),
    field(t('newEnd'), at),
    answer,
    h('div', {class: 'actions'}, submit),
  );
}
