// SPDX-License-Identifier: Apache-2.0
// The question before a cancellation.
import {t} from './texts.js';
import {isOpen} from './questions.js';
import {seconds, span, zoneName} from './time.js';
import {namesOf, sizeText} from './reservation-words.js';
import {button, h, named, together} from './view.js';

export const cancelText = one => t(one.maintenance ? 'cancelMaintenance' : 'cancelReservation');

// what tells how much a reservation has, with the hosts that the user may see.
const what = one => [sizeText(one), one.hosts.length > 0 ? [': ', namesOf(one.hosts)] : null];

// question asks once more before a cancellation, with what will happen to the servers.
export function question({one, dialog, questions}, send) {
  if (!dialog || !one) return null;
  const {servers, changed} = dialog,
    canceling = isOpen(questions, 'cancel'),
    busy = canceling || isOpen(questions, 'foresee');
  return h(
    'dialog',
    {
      'aria-labelledby': 'cancel-title',
      ref: element => {
        if (element && !element.open) element.showModal();
      },
      close: () => send({type: 'keep'}),
    },
    h('h2', {id: 'cancel-title'}, t(one.maintenance ? 'cancelMaintenanceTitle' : 'cancelTitle')),
    changed && h('p', {class: 'box bad', role: 'alert', id: 'cancel-changed'}, t('changedWhileAsked')),
    h('p', {}, named(one.name)),
    h('p', {id: 'cancel-what'}, span(seconds(one.start), seconds(one.end)), ' ', h('span', {class: 'soft'}, zoneName()), h('br'), what(one)),
    servers.length > 0
      ? together(
          h('p', {}, t('cancelServers')),
          h(
            'ul',
            {class: 'plain-list'},
            servers.map(server => h('li', {key: server.id}, named(server.name), ': ', t(`becomes_${server.becomes}`))),
          ),
        )
      : h('p', {}, t(one.maintenance ? 'cancelMaintenanceText' : 'cancelNoServers')),
    h(
      'div',
      {class: 'actions'},
      // A dialog that is closed by its own method gives the focus back to the button that opened it.
      button(t('keep'), event => event.currentTarget.closest('dialog').close(), {id: 'keep', 'aria-disabled': canceling ? 'true' : null}),
      button(cancelText(one), () => send({type: 'confirm'}), {
        class: 'danger',
        id: 'confirm-cancel',
        'aria-disabled': busy ? 'true' : null,
      }),
    ),
  );
}
