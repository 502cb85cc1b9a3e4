// SPDX-License-Identifier: Apache-2.0
// Which messages stand on the page at one time.
const MOST = 3;

// withMessage returns the messages that stand after another one comes, the oldest first. It takes the place of one about
// the same, or with the same text if nothing can be undone there; of too many the oldest goes.
export const withMessage = (list, one) => [...list.filter(other => !isSame(other, one)), one].slice(-MOST);

const isSame = (a, b) => Boolean(a.about && a.about === b.about) || (a.text === b.text && !a.undo && !b.undo);
