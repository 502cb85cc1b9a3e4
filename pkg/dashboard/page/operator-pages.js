// SPDX-License-Identifier: Apache-2.0
// Which pages of operators there are. This is loaded at once; what they show is loaded with the first of them.

// pages are the names of the pages, each with the rule that shows it.
export const pages = [
  ['usage', 'usage:get_all_projects'],
  ['hosts', 'hosts:get_instances'],
  ['energy', 'energy:get'],
  ['decisions', 'decisions:get'],
  ['preemptible', 'preemptible:list'],
  ['queue', 'besteffort:list'],
  ['images', 'images:list'],
  ['doctor', 'doctor:get'],
];

// everybodys are the rules that others have, too: they alone make nobody an operator.
const everybodys = ['decisions:get', 'besteffort:list'];

// allowed returns the names of the pages that a user may see.
export const allowed = may => pages.filter(([, rule]) => may(rule)).map(([name]) => name);

// isOperator reports whether the head of the page leads to these pages.
export const isOperator = may => pages.some(([, rule]) => !everybodys.includes(rule) && may(rule));
