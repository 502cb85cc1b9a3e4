// SPDX-License-Identifier: Apache-2.0
// Runs in the page beside its own scripts. At every frame it looks at what the page shows, and it notes what the form
// showed whenever its button was pressed. What must not be goes to `wrong`.
const HEAD = 82, // the height of what is above the rows
  FREE = {y: -36, height: 36, host: {name: 'the row of the free hosts', claims: []}};

(() => {
  if (window.watch) return true;
  const watch = (window.watch = {wrong: [], pressed: [], undone: 0, told: [], pictures: 0, tips: 0});
  const state = () => almanac.calendar.state(),
    find = selector => document.querySelector(selector),
    value = selector => find(selector)?.value ?? '';
  const note = text => watch.wrong.length < 20 && !watch.wrong.includes(text) && watch.wrong.push(text);

  // look at what stands at the pointer and in the form.
  function look() {
    const {hover, form, data} = state(),
      free = [...document.querySelectorAll('.tip dl.facts div')].find(one => one.querySelector('dt').textContent === 'Free')?.querySelector('dd').textContent;
    if (hover && !hover.name && !hover.claim && (!data.known || hover.at < data.known.from || hover.at >= data.known.to)) {
      watch.tips++;
      if (hover.free && /free/.test(find('.tip')?.textContent)) note(`${new Date(hover.at * 1000).toISOString()} was not read, and the page says of it: ${find('.tip').textContent}`);
      if (free !== undefined && free !== 'not loaded yet') note(`${new Date(hover.at * 1000).toISOString()} was not read, and the page says of it: free ${free}`);
    }
    if (Boolean(find('.panel')) !== Boolean(form)) note('the form is shown and not open, or open and not shown');
    if (find('#offer') && !form?.offer) note('an offer stays in the form');
  }

  // hatched reports whether a part of the picture has lines in every tile of the pattern.
  function hatched(canvas, ratio, left, top) {
    const side = Math.round(8 * ratio),
      {data} = canvas.getContext('2d').getImageData(Math.round(left * ratio), Math.round(top * ratio), 3 * side, side);
    for (let tile = 0; tile < 3; tile++) {
      const colors = new Set();
      for (let y = 0; y < side; y++) for (let x = tile * side; x < (tile + 1) * side; x++) colors.add(data.slice((y * 3 * side + x) * 4, (y * 3 * side + x) * 4 + 3).join());
      if (colors.size < 2) return false;
    }
    return true;
  }

  // look at the picture itself: time that was not read has lines over it wherever nothing else is drawn.
  function picture(one) {
    const canvas = find('.picture canvas'),
      {view, rows, data} = one,
      {known} = data;
    if (!canvas || !view.width || one.form || one.gesture || one.hover || one.focused) return;
    const at = px => view.start + (px - view.label) / view.scale;
    for (const row of [FREE, ...rows])
      for (let px = view.label + 2; px < view.width - 30; px += 60) {
        const [from, to] = [at(px - 4), at(px + 28)],
          top = HEAD + row.y - (row === FREE ? 0 : view.scroll) + row.height / 2 - 4;
        if (!row.host || (top < HEAD && row !== FREE) || top > view.height - 12 || (known && to > known.from && from < known.to)) continue;
        if (row.host.claims.some(claim => claim.start < to && claim.end > from)) continue;
        if (!hatched(canvas, view.ratio, px, top)) note(`the picture shows ${row.host.name} from ${new Date(from * 1000).toISOString()} on without lines, and it was not read`);
      }
    watch.pictures++;
  }

  let before = {},
    pictured = 0;
  const frame = now => {
    if (almanac.calendar && find('.picture')) {
      look();
      const one = state(),
        same = ['view', 'data', 'rows', 'form', 'gesture', 'hover'].every(part => before[part] === one[part]);
      if (same && now - pictured > 200) {
        pictured = now;
        picture(one);
      }
      before = one;
    }
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);

  // What the user saw when they pressed the button of the form: its fields, not what the page keeps of them.
  const moment = name => (find(`#form-${name}`) ? `${value(`#form-${name}`)}T${value(`#form-${name}-clock`)}` : '');
  addEventListener(
    'submit',
    () => {
      const {form} = state(),
        button = find('#confirm');
      if (!form || form.sending || button.getAttribute('aria-disabled') === 'true') return; // it was pressed twice, or not at all
      watch.pressed.push({
        mode: form.mode,
        id: form.id || '',
        again: button.textContent === 'Send it again',
        offered: Boolean(find('#offer')),
        offer: form.offer.body,
        name: value('#form-name'),
        quantity: value('#form-quantity'),
        when: value('#form-when'),
        start: moment('start'),
        end: moment('end'),
        utc: value('#zone') === 'utc',
        only: find('#only-these')?.checked ? find('label[for=only-these]').textContent : '',
      });
    },
    {capture: true},
  );
  addEventListener('click', event => event.target.matches?.('.toast .undo') && !/^The form is closed/.test(event.target.parentElement.textContent) && watch.undone++, {capture: true});
  new MutationObserver(changes => {
    for (const one of changes.flatMap(change => [...change.addedNodes])) watch.told.push([one.querySelector('span').textContent, one.className]);
  }).observe(find('.toasts'), {childList: true});

  // What a user does, at once: an element may be gone a moment later.
  Object.assign(watch, {
    press: (selector, times = 1) => {
      const all = document.querySelectorAll(selector),
        one = all[all.length - 1];
      if (!one || one.disabled) return false;
      one.focus({preventScroll: true});
      for (let i = 0; i < times; i++) one.click();
      return true;
    },
    pressAll: selector => {
      const all = document.querySelectorAll(selector);
      for (const one of all) one.click();
      return all.length > 0;
    },
    type: (selector, text) => {
      const field = find(selector);
      if (!field || field.matches(':disabled')) return false;
      field.focus({preventScroll: true});
      field.select();
      return document.execCommand('insertText', false, text);
    },
    choose: (selector, chosen) => {
      const list = find(selector);
      if (!list || list.matches(':disabled') || ![...list.options].some(one => one.value === chosen)) return false;
      list.value = chosen;
      list.dispatchEvent(new Event('change', {bubbles: true}));
      return true;
    },
    // place returns where the picture has a row and a part of the future in view, in pixels of the page; null if there is none.
    place: (row, part) => {
      const {view, rows} = state(),
        frame = find('.picture')?.getBoundingClientRect(),
        now = view.label + Math.max(0, Date.now() / 1000 + 600 - view.start) * view.scale,
        px = now + Math.min(0.99, part) * (view.width - now);
      if (!frame || rows.length === 0 || now > view.width - 20) return null;
      const one = row < 0 ? FREE : rows[row % rows.length];
      return [frame.left + px, frame.top + HEAD + one.y - view.scroll + one.height / 2];
    },
    // own returns where a reservation of the user's project begins and ends in view, with its row; null if there is none.
    own: number => {
      const {view, rows} = state(),
        frame = find('.picture')?.getBoundingClientRect(),
        x = at => view.label + (at - view.start) * view.scale,
        all = rows.flatMap(row => (row.host?.claims || []).filter(claim => claim.id && x(claim.start) > view.label + 10 && x(claim.end) < view.width - 10 && x(claim.end) - x(claim.start) > 24).map(claim => ({row, claim})));
      if (!frame || all.length === 0) return null;
      const {row, claim} = all[number % all.length];
      return [frame.left + x(claim.start), frame.left + x(claim.end), frame.top + HEAD + row.y - view.scroll + row.height / 2];
    },
    // answered waits until the form has an answer or a failure, at most for some milliseconds.
    answered: async ms => {
      const until = performance.now() + ms;
      for (;;) {
        const {form} = state();
        if (!form || form.offer || form.refusal || form.unsure || find('#complaint') || find('#try-again')) return true;
        if (performance.now() > until) return false;
        await new Promise(done => setTimeout(done, 15));
      }
    },
    // unsure waits for the end of a change that was sent, and tells whether nobody knows of it.
    unsure: async ms => {
      const until = performance.now() + ms;
      while (state().form?.sending && performance.now() < until) await new Promise(done => setTimeout(done, 15));
      return Boolean(state().form?.unsure);
    },
    quiet: async ms => {
      const until = performance.now() + ms;
      while (watch.resting() !== '' && performance.now() < until) await new Promise(done => setTimeout(done, 15));
      return watch.resting() === '';
    },
    // resting tells what the page still waits for; nothing if it is as it stays.
    resting: () => {
      if (!almanac.calendar || !find('.picture')) return 'the calendar is not shown';
      const {data, form, live, view} = state(),
        open = Object.keys(data.questions.open);
      if (!live.on || !find('.live.on')) return 'the page does not hear of changes';
      if (open.length) return `the calendar waits for ${open}`;
      if (find('.notice .bad')) return `the page complains: ${find('.notice .bad').textContent}`;
      if (!data.known || data.known.from > view.start || data.known.to < view.start + view.span) return 'what is in view is not known';
      if (data.collecting || data.old === 'all' || data.old.size) return 'something known is old';
      if (form?.sending) return 'the form is being sent';
      if (form && (form.due || form.old || Object.keys(form.questions.open).length)) return 'the form has no answer';
      return '';
    },
    // seen is what the page shows: the claims, the time that it knows, and what the form has been told.
    seen: () => {
      if (!almanac.calendar || !find('.picture')) return {resting: watch.resting()};
      const {data, form} = state(),
        claims = [...data.hosts.values()].flatMap(host => host.claims.map(one => [host.name, Math.round(one.start * 1000), Math.round(one.end * 1000), String(one.mine), one.id, one.name, one.status || '']));
      return {
        claims: claims.map(([host, from, to, ...rest]) => ({host, from, to, rest})),
        known: data.known && [Math.round(data.known.from * 1000), Math.round(data.known.to * 1000)],
        resting: watch.resting(),
        form: form && {mode: form.mode, id: form.id || '', offered: Boolean(form.offer), refused: Boolean(form.refusal?.real), unsure: form.unsure, body: (form.offer || form.refusal)?.body || null},
      };
    },
    take: () => {
      const {wrong, pressed, undone, told, pictures, tips} = watch;
      Object.assign(watch, {wrong: [], pressed: [], undone: 0, told: [], pictures: 0, tips: 0});
      return {wrong, pressed, undone, told, pictures, tips, troubles: troubles.splice(0), seen: watch.seen()};
    },
  });
  return true;
})();
