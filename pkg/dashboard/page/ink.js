// SPDX-License-Identifier: Apache-2.0
// What the parts of the picture draw with: the colors of the theme, patterns, and texts that fit.

const names = [
  'ground',
  'row',
  'group',
  'line',
  'strong',
  'ink',
  'soft',
  'past',
  'weekend',
  'now',
  'other',
  'other-ink',
  'offer',
  'bad',
  'asleep',
  'waking',
  'up',
  'closed',
  'focus',
  'free',
  ...Array.from({length: 8}, (_, i) => `mine-${i}`),
  'mine-ink',
];

// colors reads the colors of the theme in an element; those that a user forces on all pages are names that a canvas knows.
export function colors(element) {
  const style = getComputedStyle(element);
  return Object.fromEntries(names.map(name => [name, style.getPropertyValue(`--${name}`).trim()]));
}

const patterns = new Map();

// pattern returns lines across an area: `kind` tells areas apart that color alone would not.
export function pattern(kind, color, ratio) {
  const key = `${kind} ${color} ${ratio}`;
  if (!patterns.has(key)) {
    const size = Math.round(8 * ratio),
      tile = document.createElement('canvas');
    tile.width = tile.height = size;
    const c = tile.getContext('2d');
    c.strokeStyle = c.fillStyle = color;
    c.lineWidth = 1.4 * ratio;
    const line = (x0, y0, x1, y1) => {
      c.beginPath();
      c.moveTo(x0, y0);
      c.lineTo(x1, y1);
      c.stroke();
    };
    if (kind !== 'dots') for (const shift of [-size, 0, size]) line(shift, size, shift + size, 0);
    if (kind === 'cross') for (const shift of [-size, 0, size]) line(shift, 0, shift + size, size);
    if (kind === 'dots') {
      c.beginPath();
      c.arc(size / 2, size / 2, 1.3 * ratio, 0, 7);
      c.fill();
    }
    const made = tile.getContext('2d').createPattern(tile, 'repeat');
    made.setTransform(new DOMMatrix([1 / ratio, 0, 0, 1 / ratio, 0, 0]));
    patterns.set(key, made);
  }
  return patterns.get(key);
}

// isolated returns a text of a user that does not turn its surroundings around, whatever directions it is written in.
export const isolated = text => `\u2068${text}\u2069`;

const NARROW = 8; // pixels: nobody sees the corners of what is narrower

// box begins a path around a box with round corners.
export function box(c, px, y, width, height) {
  c.beginPath();
  c.roundRect(px, y, width, height, Math.min(5, width / 2, height / 2));
}

// filler returns what fills a box with a color or a pattern, one after another. A narrow box has no round corners: a
// quarter has hundreds, and paths were half of the work for a frame.
export function filler(c, {px, py, width, height}) {
  if (width < NARROW) return style => ((c.fillStyle = style), c.fillRect(px, py, width, height));
  box(c, px, py, width, height);
  return style => ((c.fillStyle = style), c.fill());
}

const fitted = new Map();

// fit returns a text that has at most `room` pixels.
export function fit(c, text, room) {
  if (text.length < 200 && c.measureText(text).width <= room) return text;
  const key = `${c.font} ${Math.floor(room / 4)} ${text}`;
  if (!fitted.has(key)) {
    if (fitted.size > 2000) fitted.clear();
    let low = 0,
      high = Math.min(text.length, 200);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (c.measureText(text.slice(0, middle) + '…').width <= room) low = middle;
      else high = middle - 1;
    }
    fitted.set(key, low ? text.slice(0, low) + '…' : '');
  }
  return fitted.get(key);
}
