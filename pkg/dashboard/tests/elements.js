// SPDX-License-Identifier: Apache-2.0
// What a test reads of the elements that a view returns.

// parts returns all elements of a view, those around others first.
export const parts = node => (Array.isArray(node) ? node.flatMap(parts) : node?.props ? [node, ...parts(node.props.children)] : []);

// words returns the text of a view.
export const words = node =>
  Array.isArray(node)
    ? node.map(words).join('')
    : node?.props
      ? words(node.props.children)
      : ['string', 'number'].includes(typeof node)
        ? String(node)
        : '';

export const byID = (view, id) => parts(view).find(one => one.props.id === id);
