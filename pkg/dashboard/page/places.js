// SPDX-License-Identifier: Apache-2.0
// Where times are in the picture.
export const HEAD = 46; // the height of the time axis
export const FONT = 'system-ui, "Liberation Sans", "DejaVu Sans", sans-serif';

export const x = (view, at) => view.label + (at - view.start) * view.scale;
export const timeAt = (view, px) => view.start + (px - view.label) / view.scale;
export const end = view => timeAt(view, view.width);
