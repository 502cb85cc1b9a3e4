// SPDX-License-Identifier: Apache-2.0
// Parts of the page whose scripts are loaded when they are opened.
import {button, fill, h, problem} from './dom.js';
import {t} from './texts.js';

// lazily shows a part of the page once its script is there. load returns a promise of the module, and show shows the
// part and returns what follows the address and what ends it. The address may have changed meanwhile.
export function lazily(main, load, show) {
  let part = null,
    address = null,
    ended = false;

  function begin() {
    fill(main, h('p', {class: 'page soft'}, t('loading')));
    load().then(
      module => {
        if (ended) return;
        part = show(module);
        if (address) part.went(address);
      },
      () => ended || failed('unreachable'),
    );
  }

  // failed tells that the script cannot be loaded. If the service answers, it has been upgraded, and its page is new.
  function failed(text) {
    fill(main, h('div', {class: 'page'}, problem({message: t(text)}), button(t('tryAgain'), again, {id: 'try-again'})));
  }

  async function again() {
    try {
      const module = await load();
      if (ended) return;
      part = show(module);
      if (address) part.went(address);
    } catch {
      const answer = await fetch('./', {cache: 'no-store'}).catch(() => null);
      if (ended) return;
      if (answer?.ok) location.reload();
      else failed('unreachable');
    }
  }

  begin();
  return {
    went: next => {
      address = next;
      part?.went(next);
    },
    end: () => {
      ended = true;
      part?.end();
    },
  };
}
