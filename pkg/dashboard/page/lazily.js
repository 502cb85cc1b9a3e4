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

  const begin = missing =>
    load().then(module => {
      if (ended) return;
      part = show(module);
      if (address) part.went(address);
    }, missing);

  function failed() {
    if (ended) return;
    fill(main, h('div', {class: 'page'}, problem({message: t('partMissing')}), button(t('tryAgain'), () => begin(reload), {id: 'try-again'})));
  }

  // reload loads the whole page if the service answers: it has been upgraded then, and its page is new.
  async function reload() {
    const answer = await fetch('./', {cache: 'no-store'}).catch(() => null);
    if (answer?.ok && !ended) location.reload();
    else failed();
  }

  fill(main, h('p', {class: 'page soft'}, t('loading')));
  begin(failed);
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
