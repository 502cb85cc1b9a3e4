// SPDX-License-Identifier: Apache-2.0
// The frame of the page: who the user is, where they are, and the parts that never change.
import {announce, button, fill, h, named, outside, problem, select} from './dom.js';
import {t} from './texts.js';
import {follow} from './address.js';
import {get, onSignedOut, patch, remove, session} from './client.js';
import {calendarPlace, forgetTab, keep, keepCalendarPlace, kept} from './kept.js';
import {now} from './time.js';
import * as calendar from './calendar.js';
import {isOperator} from './operator-pages.js';
import {lazily} from './lazily.js';
import * as signin from './signin.js';

const main = h('main', {id: 'main', tabindex: '-1'});
const header = document.querySelector('header'); // it has the name of Almanac before the scripts are there
// skip returns a link that moves the keyboard past the tools.
const skip = (text, find) =>
  h(
    'a',
    {
      href: '#main',
      class: 'skip',
      click: event => {
        event.preventDefault();
        (find() || main).focus();
      },
    },
    t(text),
  );
header.before(
  skip('skip', () => main),
  skip('skipToPicture', () => main.querySelector('.picture')),
  skip('skipToForm', () => main.querySelector('.panel h2')), // in a field, the key that follows the link would send the form
);
header.after(main, ...outside());

const app = {
  session: null,
  now,
  may: rule => Boolean(app.session?.may?.[rule]),
  // belongs reports whether a reservation is one of the user's project, as BelongsTo does for the service.
  belongs: one => one.project_id === app.session.project_id,
  // project returns an element with the name of a project, which is its id until the name is known.
  project: id => named(names.get(id) || id, {'data-project': id}),
  projectNames: () => Object.fromEntries(names),
  go: path => {
    location.hash = `#${path}`;
  },
};
// names are those of the projects by their ids: the user's own, and for operators all that Keystone lets them list.
const names = new Map();
window.almanac = app; // for tests and for those who look into the console

// Dark and light follow the system unless the user chooses.
const themes = ['system', 'light', 'dark'];
let theme = kept('theme') || 'system';
function applyTheme() {
  document.documentElement.dataset.theme = theme;
  dispatchEvent(new Event('theme'));
}
applyTheme();

// shown is the part of the page that is shown: its name, what ends it, and for some what follows the address.
let shown = {};

function leave() {
  shown.end?.();
  shown = {};
}

function route() {
  const [, path = '/calendar', query = ''] = follow().match(/^#(\/[^?]*)\??(.*)$/) || [];
  const words = path.split('/').map(decoded).filter((word, i) => i === 0 || !isNoName(word)),
    [, section, id] = words,
    name = partOf(section, id);
  if (shown.went && shown.name === name) {
    shown.went(name === 'calendar' ? new URLSearchParams(query) : words);
    return;
  }
  leave();
  writeHeader(section);
  document.title = t('title', {page: t({operator: 'operations', calendar: 'calendar'}[name] || 'reservations')});
  main.className = name === 'calendar' ? 'wide' : '';
  const parts = {
    reservations: () => ({end: lazily(main, () => import('./list.js'), ({list}) => list(main, app)).end}),
    reservation: () => ({end: lazily(main, () => import('./reservation.js'), reservation => reservation.show(main, app, id)).end}),
    operator: () => lazily(main, () => import('./operator.js'), operator => operator.show(main, app, words)),
    calendar: () => calendar.show(main, app, new URLSearchParams(query)),
  };
  shown = {name, ...parts[name]()};
}

// partOf returns the part of the page that an address means; without an id there is the list.
const partOf = (section, id) => (section === 'reservation' && !id ? 'reservations' : ['reservations', 'reservation', 'operator'].includes(section) ? section : 'calendar');

// isNoName reports whether a part of an address names nothing: browsers take dots as steps in the path of a request.
const isNoName = word => ['', '.', '..'].includes(word);

// decoded returns a part of the address as it was before it was written there; a damaged one stays as it is.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function writeHeader(section) {
  const {session} = app,
    signed = session?.signed_in;
  const link = (to, text, current) => h('a', {href: to, 'aria-current': current ? 'page' : null}, text),
    inCalendar = section === 'calendar' || !section;
  fill(
    header,
    h('a', {href: '#/calendar', class: 'brand'}, h('span', {class: 'mark', 'aria-hidden': 'true'}), t('almanac')),
    session?.simulated ? h('span', {class: 'simulated', id: 'simulated', title: t('simulatedMore')}, simulated(session)) : null,
    signed
      ? h(
          'nav',
          {'aria-label': t('sections')},
          link(inCalendar ? '#/calendar' : calendarPlace(), t('calendar'), inCalendar),
          link('#/reservations', t('reservations'), section?.startsWith('reservation')),
          isOperator(app.may) ? link('#/operator', t('operations'), section === 'operator') : null,
        )
      : null,
    h(
      'div',
      {class: 'who'},
      signed && session.sign_in
        ? select(choices(session), session.project_id, switchProject, {'aria-label': t('project'), id: 'project'})
        : null,
      button(
        t(`theme_${theme}`),
        () => {
          theme = themes[(themes.indexOf(theme) + 1) % 3];
          keep('theme', theme);
          applyTheme();
          writeHeader(section);
          header.querySelector('#theme').focus();
        },
        {class: 'plain', id: 'theme', title: t('theme')},
      ),
      signed && session.sign_in ? button(t('signOut'), signOut, {class: 'plain', id: 'sign-out'}) : null,
    ),
  );
}

const simulated = ({speed}) => (speed > 1 ? t('simulatedFast', {speed}) : t('simulated'));

// choices are the projects of the user; the scope of the token stands there even if Keystone does not list it.
function choices(session) {
  const list = session.projects.map(one => [one.id, one.name]);
  if (!list.some(([id]) => id === session.project_id))
    list.unshift([session.project_id, session.system ? t('system') : session.project_id]);
  return list;
}

async function switchProject(id) {
  try {
    await patch('dashboard/session', {project_id: id});
    await start();
    announce(t('projectNow', {name: names.get(id) || id}));
  } catch (error) {
    fill(main, problem(error));
  }
}

async function signOut() {
  await remove('dashboard/session').catch(() => {});
  await start();
  forgetTab();
}

function askToSignIn() {
  leave();
  app.session = {sign_in: true, signed_in: false, may: {}, projects: [], simulated: app.session?.simulated, speed: app.session?.speed};
  main.className = '';
  writeHeader('');
  signin.show(main, start);
}

function nameProjects(projects) {
  for (const {id, name} of projects) names.set(id, name);
  for (const shown of document.querySelectorAll('[data-project]'))
    shown.textContent = names.get(shown.dataset.project) || shown.dataset.project;
  dispatchEvent(new Event('projects'));
}

// start reads who the user is and shows the page, or the sign-in.
async function start() {
  try {
    app.session = await session();
    leave(); // what is shown is what another user or project sees
    if (app.session.sign_in && !app.session.signed_in) {
      askToSignIn();
      return;
    }
    nameProjects(app.session.projects);
    if (app.session.sign_in && app.may('reservations:list_all'))
      get('dashboard/projects').then(
        found => nameProjects(found.projects),
        error => announce(error.message),
      );
    route();
  } catch (error) {
    if (error.status === 401) askToSignIn();
    else fill(main, h('div', {class: 'page'}, problem(error), button(t('tryAgain'), start)));
  }
}

onSignedOut(() => {
  if (app.session?.sign_in && app.session.signed_in) askToSignIn();
});
addEventListener('hashchange', ({oldURL}) => {
  keepCalendarPlace(oldURL);
  if (!app.session?.signed_in) return;
  const before = shown;
  route();
  if (shown !== before) main.focus({preventScroll: true});
});
start();
