// SPDX-License-Identifier: Apache-2.0
// The sign-in with Keystone. What is entered goes to the service, which exchanges it for a cookie that scripts cannot
// read.
import {button, field, fill, h} from './dom.js';
import {t} from './texts.js';
import {post} from './client.js';

const ways = {
  password: [
    ['username', 'userName', 'text', 'username'],
    ['password', 'password', 'password', 'current-password'],
    ['domain', 'domain', 'text', 'off'],
  ],
  credential: [
    ['application_credential_id', 'credentialID', 'text', 'off'],
    ['secret', 'secret', 'password', 'off'],
  ],
  token: [['token', 'token', 'password', 'off']],
};

// show shows the form; then is called when the user is signed in.
export function show(main, then) {
  let way = 'password';
  const place = h('div', {class: 'page narrow'});
  fill(main, place);
  function write() {
    const inputs = ways[way].map(([name, label, type, complete]) => [
      name,
      label,
      h('input', {
        type,
        name,
        autocomplete: complete,
        required: name !== 'domain',
        value: name === 'domain' ? 'Default' : '',
        spellcheck: 'false',
      }),
    ]);
    const complaint = h('p', {class: 'box bad', role: 'alert', hidden: true}),
      submit = h('button', {class: 'main', id: 'sign-in'}, t('signIn'));
    fill(
      place,
      h('h1', {}, t('signIn')),
      h(
        'div',
        {class: 'tabs', role: 'group', 'aria-label': t('howToSignIn')},
        Object.keys(ways).map(one =>
          button(
            t(`way_${one}`),
            () => {
              way = one;
              write();
            },
            {'aria-pressed': String(one === way), class: 'tab'},
          ),
        ),
      ),
      h(
        'form',
        {
          class: 'card',
          submit: async event => {
            event.preventDefault();
            submit.disabled = true;
            try {
              await post('dashboard/session', Object.fromEntries(inputs.map(([name, , input]) => [name, input.value])));
              for (const [, , input] of inputs) input.value = '';
              then();
            } catch (error) {
              complaint.textContent = error.message;
              complaint.hidden = false;
              submit.disabled = false;
            }
          },
        },
        inputs.map(([, label, input]) => field(t(label), input)),
        complaint,
        h('div', {class: 'actions'}, submit),
      ),
      h('p', {class: 'soft'}, t('signInText')),
    );
    inputs[0][2].focus();
  }
  write();
}
