// All texts of the page in English. A translation is a file with the same keys. `{name}` stands for a value; a text
// with the end _one is used instead for a count of 1.
const texts = {
  simulated: 'Simulated cloud', simulatedMore: 'The machines and servers of this cloud exist in the memory of almanacd only',
  almanac: 'Almanac', title: '{page} · Almanac', skip: 'Skip to the content', sections: 'Sections', calendar: 'Calendar', reservations: 'Reservations', operations: 'Operations',
  project: 'Project', system: 'The whole system', theme: 'Colors: system, light or dark', theme_system: '◐ System', theme_light: '☀ Light', theme_dark: '☾ Dark', projectNow: 'You now see project {name}.', tryAgain: 'Try again', close: 'Close', back: 'Back to the calendar',
  unreachable: 'The service cannot be reached (status {status}). Check your connection, and try again.', loading: 'Loading …', more: 'Show more', copy: 'Copy', copiedText: 'Copied.', none: 'none', unknown: 'unknown', yes: 'yes', no: 'no',

  // Signing in.
  signIn: 'Sign in', signOut: 'Sign out', howToSignIn: 'How to sign in', way_password: 'Password', way_credential: 'Application credential', way_token: 'Token', userName: 'User name', password: 'Password', domain: 'Domain', credentialID: 'ID of the application credential', secret: 'Secret', token: 'Token from Keystone',
  signInText: 'Almanac sends what you enter to Keystone and stores nothing. Your browser keeps a cookie until you sign out or close it; scripts cannot read it.',

  // The calendar.
  dragHint: 'Drag over free time to book it, or press Book.', pictureLabel: 'Calendar of the hosts', keysHelp: 'Arrow up and down choose a host, left and right a time. Control and an arrow go to the next change. Shift and an arrow move the calendar; plus and minus zoom; Home goes to the present. Space begins a selection, Enter books it or opens the reservation. The button Table shows the same as a table.',
  panel: 'Booking', earlier: 'Earlier', later: 'Later', today: 'Now', range: 'Range', day: 'Day', week: 'Week', month: 'Month', quarter: 'Quarter', zoomIn: 'Zoom in', zoomOut: 'Zoom out', localTime: 'Local time', utc: 'UTC', timeZone: 'Time zone',
  groupBy: 'Group by', noGroups: 'No groups', zone: 'Zone', aggregates: 'Aggregates', group: '{by} {name} · {count} hosts', group_one: '{by} {name} · {count} host', table: 'Table', book: 'Book', connecting: 'Connecting …', liveOn: 'Live', legend: 'Legend',
  legendMine: 'yours', legendOther: 'others’', legendClosed: 'out of order', legendFree: 'free now', legendUsed: 'in use', legendPreemptible: 'only preemptible instances', legendAsleep: 'asleep', legendWaking: 'waking', legendStrip: 'power until now: full on, dashed asleep, dotted waking',
  yours: 'Yours', others: 'Reserved by another project', host: 'Host', hosts: 'Hosts', time: 'Time', duration: 'Duration', kind: 'Kind', wholeHost: 'whole host', instancesShare: '{count} instances, {share} % of the host', instancesShare_one: '{count} instance, {share} % of the host', status: 'Status', now: 'now', in: 'in {length}', ago: '{length} ago', reason: 'Reason', free: 'Free', freeFrom: 'from {start}', freeBetween: '{span}', freeThroughout: 'free throughout',
  state_up: 'on', state_sleeping: 'asleep', state_waking: 'waking', state_out_of_order: 'out of order', notReservable: 'not reservable', instances: '{count} instances', instances_one: '{count} instance', empty: 'no instances', preemptible: '{count} preemptible',
  unknownProperties: 'No host has these properties: {names}.', noHostsMatch: 'No host passes the filter.', noHosts: 'There are no hosts.', tableCaption: '{count} hosts, {span}', tableCaption_one: '{count} host, {span}', statusNow: '{name} is now {status}.', booked: '{name} is booked: {span}.',

  // Filters.
  filter: 'Filter', filterLabel: 'Filter of hosts', contains: 'contains', property: 'Property', operator: 'Comparison', value: 'Value', addCondition: 'Add condition', clearFilter: 'Clear', savedFilters: 'Saved filters', filterName: 'Name of the filter', saveFilter: 'Save', forgetFilter: 'Delete', filterNotJSON: 'A filter is JSON such as ["=", "$gpu", "a100"]. Use the lists below to write one.',

  // Booking.
  newReservation: 'New reservation', name: 'Name', defaultName: 'my reservation', quantity: 'Quantity', wholeHosts: 'Whole hosts', instanceSized: 'Instances', sizeOfOne: 'Size of one instance', vcpus: 'vCPUs', memoryMB: 'Memory in MB', diskGB: 'Disk in GB', begins: 'Begins', startNow: 'now', startAt: 'at a time', startWithin: 'before a deadline', starts: 'Starts', deadline: 'Must end before', deadlineHint: 'Almanac chooses the start.', durationHint: 'such as 90m, 4h or 1d 12h', durationWrong: 'A duration is such as 90m, 4h or 1d 12h.',
  onlyThese: 'only on {hosts}', whichHosts: 'Which hosts', incomplete: 'Fill in the form to see an offer.', offer: 'You would get', offerHosts: '{count} of {matched} matching hosts', offerHosts_one: '{count} of {matched} matching hosts', delayedByBoot: 'It begins when sleeping hosts are awake.', alsoFree: 'Also free', windowFrom: '{start} · {count} free', bookIt: 'Book it', refused: 'Not possible', wrong: 'Please correct this', inTheWay: 'What is in the way ({count})', instead: 'Possible instead:', startThen: 'Start {start}', takeFewer: 'Take {count}', untilThen: 'Until {end}',
  changeEnd: 'Change the end', newEnd: 'New end', extend: 'Extend', shorten: 'Shorten', longer: '{length} longer', shorter: '{length} shorter',

  // Reservations.
  allProjects: 'all projects', withPast: 'with the past', downloadICS: 'Download iCalendar', degraded: 'degraded', endsIn: 'ends {when}', countHosts: '{count} hosts', countHosts_one: '{count} host', countInstances: '{count} instances', countInstances_one: '{count} instance', hostsLater: 'shown once it is active', noReservations: 'There are no reservations yet. Drag over free time in the calendar to make one.',
  mostHosts: 'Hosts at one time', hostHours: 'Host-hours', ofLimit: '{value} of {limit}', noLimit: 'no limit', longest: 'Longest reservation', ahead: 'Furthest ahead',
  showInCalendar: 'Show in the calendar', facts: 'Facts', size: 'Size of one', sizeText: '{vcpus} vCPUs, {memory} MB, {disk} GB', image: 'Image', atEnd: 'At the end', endDelete: 'its servers are deleted', endShelve: 'its servers are shelved', endStop: 'its servers are stopped', endLeave: 'its servers remain', id: 'ID', use: 'Use it', serverCommand: 'Start a server in it', sameCommand: 'Book the same with the command line', feed: 'Subscribe in a calendar program', feedWarning: 'Whoever has this link can read the reservations of the project.',
  change: 'Change', renamed: 'The reservation has a new name.', rename: 'Rename', endChanged: 'The end has changed.', quantityChanged: 'The quantity has changed.', changeQuantity: 'Change the quantity', cancelReservation: 'Cancel the reservation', cancelTitle: 'Cancel this reservation?', cancelServers: 'This happens to its servers:', cancelNoServers: 'It has no servers. Its hosts are free for others at once.', keep: 'Keep it', canceled: '{name} is canceled.',
  becomes_deleted: 'deleted', becomes_shelved: 'shelved', becomes_stopped: 'stopped', becomes_left: 'remains',
  events: 'Events', event: 'Event', state: 'State', detail: 'Detail', doneAt: 'done {when}', noEvents: 'There are no events.', eventState_pending: 'to come', eventState_running: 'running', eventState_done: 'done',
  event_created: 'created', event_changed: 'changed', event_start: 'start', event_before_end: 'warning before the end', event_end: 'end', event_healed: 'healed', event_degraded: 'degraded', event_restored: 'restored', event_image: 'image', event_canceled: 'canceled', event_failed: 'failed',
  status_pending: 'pending', status_starting: 'starting', status_active: 'active', status_ending: 'ending', status_ended: 'ended', status_canceled: 'canceled', status_failed: 'failed',

  // Operations.
  page_usage: 'Usage', page_energy: 'Energy', page_decisions: 'Decisions', page_preemptible: 'Preemptible', page_queue: 'Best effort', page_images: 'Images', page_doctor: 'Doctor',
  lastTime: 'Time', lastDay: 'the last day', lastWeek: 'the last week', lastMonth: 'the last 30 days', byWhat: 'By', reserved: 'Reserved (h)', used: 'Used', unused: 'Reserved, not used', idle: 'Idle', asleep: 'Asleep', noUse: 'Nothing was reserved.', csv: 'Download CSV',
  energyStopped: 'Nothing is switched off: {by} has stopped it ({reason}).', phase: 'Phase', phase_awake: 'awake', phase_draining: 'draining', phase_stopping: 'stopping', phase_asleep: 'asleep', phase_waking: 'waking', phase_failed: 'failed', saved: 'Saved', savedHours: '{hours} host-hours asleep', mode: 'Mode', mode_off: 'off', mode_observe: 'observe', mode_recommend: 'recommend', mode_auto: 'automatic', measured: 'Measured', controller: 'Controller', resumeSwitching: 'Allow switching off again', stopSwitching: 'Stop all switching off', switchingStopped: 'Nothing is switched off any more.', switchingResumed: 'Hosts may be switched off again.', fromPage: 'from the page',
  plan: 'Plan', planText: '{required} hosts are required, {spare} are kept in addition; {on} are on.', switchTo: 'Switch', to_on: 'on', to_off: 'off', to_standby: 'to standby', kept: 'stays on', nothingPlanned: 'Nothing is planned.', approve: 'Approve the plan', approved: 'The plan is approved.', watts: 'Watts', why: 'Why',
  decisionsText: 'Why is a server where it is, or why was there no host for it?', serverOrRequest: 'ID of a server, or of a request (req-…)', explain: 'Explain', request: 'Request', placed: 'Placed', considered: 'Hosts considered', left: 'Left after each filter', reservation: 'Reservation', refusedHosts: 'Hosts that were refused ({count})', ranked: 'Ranking', weight: 'Weight', parts: 'Parts',
  server: 'Server', servers: 'Servers', cost: 'Cost', since: 'Since', evictable: 'can be evicted', noPreemptible: 'There are no preemptible instances.', costTitle: 'What would room cost now?', victims: 'Victims', hasRoom: 'has room', ask: 'Ask',
  position: 'Place', expected: 'Expected start', emptyQueue: 'The queue is empty.', queue_waiting: 'waiting', queue_running: 'running', queue_suspended: 'suspended', queue_done: 'done', queue_failed: 'failed', queue_canceled: 'canceled',
  noImages: 'No image is on a host for a reservation.', image_there: 'there', image_transferring: 'on its way', image_scheduled: 'scheduled', image_late: 'late', image_waiting: 'waiting', image_failed: 'failed',
  doctorText: 'The doctor checks whether reservations, their OpenStack resources, instances and projects are consistent.', examine: 'Examine again', examining: 'Examining …', healthy: 'Everything is consistent.', finding: 'Finding', subject: 'Subject', message: 'Message', remedy: 'Remedy', fixable: 'Fixable', outcome: 'Outcome', fixAll: 'Fix what can be fixed',
};

// t returns the text of a key with its values. A key without a text is shown itself, so that a new word of the API is
// still readable.
export function t(key, values = {}) {
  const text = values.count === 1 && texts[`${key}_one`] || texts[key] || key.replace(/^[a-zA-Z]+_/, '');
  return text.replace(/\{(\w+)\}/g, (whole, name) => name in values ? String(values[name]) : whole);
}
