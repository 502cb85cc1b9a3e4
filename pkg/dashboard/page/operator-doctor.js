// SPDX-License-Identifier: Apache-2.0
// What the doctor finds, what helps, and what a fix has done.
import {t} from './texts.js';
import {readable} from './time.js';
import {counted, list, orderButton, part} from './operator-parts.js';
import {h, named, together} from './view.js';

// questions are the question of this page. The doctor asks the whole cloud, so that it is asked seldom.
export const questions = () => ({doctor: {request: {path: 'v1/doctor'}, every: 300000}});

export const view = (state, send) =>
  together(
    h('p', {}, t('doctorText')),
    treatment(state, send),
    part(state, 'doctor', found => examined(state, send, found)),
  );

function examined(state, send, found) {
  const fixable = found.findings.filter(one => one.fixable);
  return together(
    found.untrusted ? h('p', {class: 'box bad'}, named(readable(found.untrusted))) : null,
    found.cloud ? null : h('p', {class: 'box'}, t('doctorWithoutCloud')),
    found.findings.length === 0
      ? h('p', {class: 'box good'}, t('healthy'))
      : list(state, send, {
          name: 'doctor',
          caption: t('page_doctor'),
          heads: [t('finding'), t('message'), t('remedy'), t('fixable')],
          rows: found.findings,
          row: one => ({key: `${one.kind} ${one.subject} ${one.message}`, cells: [...what(one), t(one.fixable ? 'yes' : 'no')]}),
          empty: '',
        }),
    state.may('doctor:fix') && fixable.length > 0
      ? h(
          'div',
          {class: 'actions start'},
          orderButton(
            send,
            t('fixAll'),
            {
              title: t('fixTitle', {count: counted(fixable.length)}),
              lines: [t('fixText')],
              yes: t('fixAll'),
              danger: true,
              request: {method: 'POST', path: 'v1/doctor', body: {}},
              said: t('fixDone'),
              result: 'doctor',
            },
            {class: 'main', id: 'fix'},
          ),
        )
      : null,
  );
}

// what tells of a finding: its kind with its subject, the message and the remedy.
const what = one => [
  together(h('code', {}, one.kind), h('div', {}, named(one.subject))),
  named(readable(one.message)),
  named(readable(one.remedy || '–')),
];

// treatment tells what the last fix has done.
function treatment(state, send) {
  const done = state.results.doctor;
  if (!done) return null;
  const treated = done.value.findings.filter(one => one.outcome);
  return h(
    'section',
    {class: 'card', id: 'treatment'},
    h('h2', {}, t('treatment')),
    list(state, send, {
      name: 'treatment',
      caption: t('treatment'),
      heads: [t('finding'), t('message'), t('remedy'), t('outcome')],
      rows: treated,
      row: one => ({
        key: `${one.kind} ${one.subject} ${one.message}`,
        cells: [...what(one), together(t(`outcome_${one.outcome}`), one.detail ? [': ', named(readable(one.detail))] : null)],
      }),
      empty: t('nothingTreated'),
    }),
  );
}
