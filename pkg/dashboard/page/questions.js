// SPDX-License-Identifier: Apache-2.0
// What the page has asked of the service and has no answer to. Each question has a key, and a new one of the same key
// closes the one before: its late answer has another number and is dropped. A question that failed in a way that may
// pass is asked again after growing times, until it is closed.

export const none = {next: 1, open: {}};

const FIRST = 1000,
  LONGEST = 60000;

// ask opens a question and returns the questions with the effect that sends it. `lasting` questions are asked again
// when they fail; what changes something is not.
export function ask(questions, key, request, {lasting = true} = {}) {
  const number = questions.next;
  return [
    {next: number + 1, open: {...questions.open, [key]: {number, request, lasting, failures: 0, error: null, until: 0}}},
    {do: 'ask', key, number, request},
  ];
}

// close forgets a question; the effect ends its request.
export function close(questions, key) {
  const {[key]: closed, ...open} = questions.open;
  return closed ? [{...questions, open}, {do: 'forget', key}] : [questions];
}

// closeAll forgets all questions whose key passes.
export function closeAll(questions, passes = () => true) {
  let effects = [];
  for (const key of Object.keys(questions.open).filter(passes)) {
    const [rest, ...more] = close(questions, key);
    questions = rest;
    effects = [...effects, ...more];
  }
  return [questions, ...effects];
}

// answered takes an answer. It returns null for a late one, and else the questions, the request, and the effects: a
// failure that may pass keeps a lasting question open and asks it again later.
export function answered(questions, {key, number, error = null, clock = 0, chance = 0.5}) {
  const question = questions.open[key];
  if (!question || question.number !== number) return null;
  const {[key]: done, ...open} = questions.open;
  if (!error?.passes || !question.lasting) return {questions: {...questions, open}, request: done.request, effects: []};
  const growing = Math.min(LONGEST, FIRST * 2 ** question.failures) * (0.75 + chance / 2),
    ms = Math.round(Math.max(growing, (error.after || 0) * 1000));
  const failed = {...question, failures: question.failures + 1, error, until: clock + ms};
  return {
    questions: {...questions, open: {...open, [key]: failed}},
    request: done.request,
    effects: [{do: 'wait', key, ms, event: {type: 'again', key}}],
  };
}

// again asks a question that failed once more, at once.
export function again(questions, key) {
  const question = questions.open[key];
  if (!question?.error) return [questions];
  const number = questions.next;
  return [
    {next: number + 1, open: {...questions.open, [key]: {...question, number, error: null}}},
    {do: 'ask', key, number, request: question.request},
  ];
}

// isOpen reports whether an answer is awaited, now or after the next attempt.
export const isOpen = (questions, key) => Boolean(questions.open[key]);

// failure returns the error of a question that will be asked again, or null.
export const failure = (questions, key) => questions.open[key]?.error || null;

// understood returns what a step makes of an event. An answer that is not what the API promises is a failure that may pass;
// `unreadable` is its error, and `tell` gets what is wrong with it.
export function understood(step, state, event, unreadable, tell) {
  try {
    return step(state, event);
  } catch (fault) {
    if (event.type !== 'answered' || event.error) throw fault;
    tell(fault);
    return step(state, {...event, answer: undefined, error: unreadable()});
  }
}
