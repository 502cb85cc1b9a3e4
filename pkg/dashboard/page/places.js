// SPDX-License-Identifier: Apache-2.0
// Where times are in the picture.
export const AXIS = 46; // the height of the time axis
export const FREE = 36; // that of the row of the free hosts below it
export const HEAD = AXIS + FREE; // that of both, above the rows
export const FONT = 'system-ui, "Liberation Sans", "DejaVu Sans", sans-serif';

export const x = (view, at) => view.label + (at - view.start) * view.scale;
export const timeAt = (view, px) => view.start + (px - view.label) / view.scale;
export const end = view => timeAt(view, view.width);
