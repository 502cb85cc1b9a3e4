// SPDX-License-Identifier: Apache-2.0
// What answers and errors of the operators' pages mean.
import {failure} from './questions.js';

// isAnswer reports whether an error tells how things are: there is no plan yet, or no energy controller.
export const isAnswer = error => error.status === 404 || error.status === 409;

// isOld reports whether an answer is shown although asking again has failed.
export const isOld = (state, key) => Boolean(state.answers[key] && (failure(state.questions, key) || state.refused[key]));
