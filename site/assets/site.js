// SPDX-License-Identifier: Apache-2.0
// The site works without this script, except search, the choice of colors and the menu of small screens.
(() => {
  const root = new URL('.', document.currentScript.src);
  const themes = ['system', 'light', 'dark'];

  // A browser that keeps nothing throws; the choice lasts for the page then.
  const kept = value => {
    try {
      if (value) localStorage.setItem('almanac-site-theme', value);
      return localStorage.getItem('almanac-site-theme');
    } catch {
      return value;
    }
  };
  const setTheme = theme => (document.documentElement.dataset.theme = theme);
  setTheme(themes.includes(kept()) ? kept() : 'system');

  // element returns an element with attributes and children; text is never read as HTML.
  const element = (name, attributes, ...children) => {
    const made = document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    made.append(...children);
    return made;
  };

  const themeButton = button => {
    const value = button.querySelector('.value');
    const show = () => (value.textContent = document.documentElement.dataset.theme);
    show();
    button.addEventListener('click', () => {
      const next = themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes.length];
      setTheme(next);
      kept(next);
      show();
    });
  };

  const menuButton = button => {
    const show = open => {
      button.setAttribute('aria-expanded', open);
      document.body.classList.toggle('open', open);
    };
    button.addEventListener('click', () => show(button.getAttribute('aria-expanded') !== 'true'));
    document.addEventListener('keydown', event => event.key === 'Escape' && show(false));
  };

  // copyButtons adds a button to each block of code. Of a session it copies the commands alone.
  const copyButtons = () => {
    if (!navigator.clipboard) return;
    document.querySelectorAll('article pre').forEach(block => {
      const button = element('button', {type: 'button', class: 'copy'}, 'Copy');
      button.addEventListener('click', async () => {
        const lines = block.textContent.split('\n');
        const commands = lines.filter(line => line.startsWith('$ ')).map(line => line.slice(2));
        try {
          await navigator.clipboard.writeText(commands.length ? commands.join('\n') : block.textContent);
          button.textContent = 'Copied';
        } catch {
          button.textContent = 'Not allowed';
        }
        setTimeout(() => (button.textContent = 'Copy'), 1500);
      });
      const frame = element('div', {class: 'block'});
      block.replaceWith(frame);
      frame.append(block, button);
    });
  };

  // followTheReader marks in the table of contents where the reader is.
  const followTheReader = () => {
    const list = document.querySelector('.here');
    if (!list) return;
    const links = new Map([...list.querySelectorAll('a')].map(link => [decodeURIComponent(link.hash.slice(1)), link]));
    const headings = [...document.querySelectorAll('article h2[id], article h3[id]')].filter(heading => links.has(heading.id));
    const mark = () => {
      const passed = headings.filter(heading => heading.getBoundingClientRect().top < 120);
      const now = passed.at(-1);
      links.forEach((link, id) => link.classList.toggle('now', id === now?.id));
      const link = links.get(now?.id);
      if (link) list.scrollTop = link.offsetTop - list.clientHeight / 2;
    };
    addEventListener('scroll', () => requestAnimationFrame(mark), {passive: true});
    mark();
  };

  // showOwnPlace scrolls the list of pages, and not the page, to the page that the reader sees.
  const showOwnPlace = pages => {
    const own = pages.querySelector('[aria-current]');
    if (own) pages.scrollTop = own.offsetTop - pages.clientHeight / 2;
  };

  // score is how well a section answers the words: 0 if one of them is nowhere in it.
  const score = (section, words) => {
    let sum = 0;
    for (const word of words) {
      const title = section.low.page.includes(word) ? 6 : 0;
      const heading = section.low.heading.includes(word) ? 8 : 0;
      const text = Math.min(section.low.text.split(word).length - 1, 4);
      if (title + heading + text === 0) return 0;
      sum += title + heading + text;
    }
    const phrase = words.join(' ');
    if (section.low.heading === phrase || (section.low.page === phrase && !section.heading)) sum += 20;
    return sum;
  };

  // around returns the text near the first of the words, with the words marked.
  const around = (section, words) => {
    const at = Math.max(0, Math.min(...words.map(word => section.low.text.indexOf(word)).filter(i => i >= 0), section.text.length) - 50);
    const start = at === 0 || at >= section.text.length ? 0 : section.text.indexOf(' ', at) + 1;
    const text = section.text.slice(start, start + 160);
    const parts = [];
    let rest = 0;
    for (let i = 0; i < text.length;) {
      const word = words.find(word => text.toLowerCase().startsWith(word, i));
      if (!word) {
        i++;
        continue;
      }
      parts.push(text.slice(rest, i), element('mark', {}, text.slice(i, i + word.length)));
      rest = i += word.length;
    }
    return [start > 0 ? '… ' : '', ...parts, text.slice(rest), start + 160 < section.text.length ? ' …' : ''];
  };

  // sections loads the text of the site when it is first needed. It is a script, which a browser also reads from a disk.
  let loading;
  const sections = () =>
    (loading ??= new Promise((resolve, reject) => {
      const load = element('script', {src: new URL('find.js', root)});
      load.addEventListener('load', () => {
        const low = ({page, heading, text}) => ({page: page.toLowerCase(), heading: heading.toLowerCase(), text: text.toLowerCase()});
        resolve(window.almanacSections.map(section => ({...section, low: low(section)})));
      });
      load.addEventListener('error', () => {
        loading = undefined;
        reject(new Error('the index does not load'));
      });
      document.head.append(load);
    }));

  const finder = dialog => {
    const input = dialog.querySelector('input');
    const list = dialog.querySelector('ol');
    const state = dialog.querySelector('.state');
    const show = async () => {
      const asked = input.value;
      const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
      let all;
      try {
        all = await sections();
      } catch {
        state.textContent = 'The index of the site does not load. Reload the page.';
        return;
      }
      if (asked !== input.value) return; // the reader has typed on
      const found = words.length
        ? all
            .map(section => ({section, points: score(section, words)}))
            .filter(({points}) => points > 0)
            .sort((a, b) => b.points - a.points)
        : [];
      list.replaceChildren(
        ...found
          .slice(0, 12)
          .map(({section}) =>
            element(
              'li',
              {},
              element(
                'a',
                {href: new URL(section.address, root)},
                element('b', {}, section.heading || section.page),
                element('small', {}, section.heading ? section.page : ''),
                element('span', {}, ...around(section, words)),
              ),
            ),
          ),
      );
      const sum = found.length === 1 ? '1 section' : `${found.length} sections`;
      state.textContent = words.length ? (found.length ? sum : 'No section has all of these words.') : '';
    };
    const open = () => {
      dialog.showModal();
      input.select();
      show();
    };
    document.querySelector('.find').addEventListener('click', open);
    input.addEventListener('input', show);
    dialog.addEventListener('click', event => (event.target === dialog || event.target.closest('a')) && dialog.close());
    dialog.querySelector('form').addEventListener('submit', event => {
      const first = list.querySelector('a');
      if (event.submitter?.value === 'close' && document.activeElement !== input) return;
      event.preventDefault();
      first?.click();
    });
    dialog.addEventListener('keydown', event => {
      const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
      if (!step) return;
      event.preventDefault();
      const stops = [input, ...list.querySelectorAll('a')];
      stops[(stops.indexOf(document.activeElement) + step + stops.length) % stops.length].focus();
    });
    document.addEventListener('keydown', event => {
      const writing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName);
      const slash = event.key === '/' && !writing && !event.ctrlKey && !event.metaKey && !event.altKey;
      if (!dialog.open && (slash || (event.key === 'k' && (event.ctrlKey || event.metaKey)))) {
        event.preventDefault();
        open();
      }
    });
  };

  document.addEventListener('DOMContentLoaded', () => {
    themeButton(document.querySelector('.theme'));
    menuButton(document.querySelector('.menu'));
    finder(document.querySelector('.finder'));
    copyButtons();
    followTheReader();
    showOwnPlace(document.querySelector('.pages'));
  });
})();
