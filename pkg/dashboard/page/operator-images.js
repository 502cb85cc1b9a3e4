// SPDX-License-Identifier: Apache-2.0
// The images that are on hosts for reservations, or on their way there.
import {t} from './texts.js';
import {readable} from './time.js';
import {at, host, list, part} from './operator-parts.js';
import {named} from './view.js';

export const questions = () => ({images: {request: {path: 'v1/images'}, follows: true}});

export const view = (state, send) =>
  part(state, 'images', ({images}) =>
    list(state, send, {
      name: 'images',
      caption: t('page_images'),
      heads: [t('image'), t('host'), t('state'), t('transferStart'), t('keptUntil'), t('detail')],
      rows: images,
      row: one => ({
        key: `${one.id} ${one.host}`,
        cells: [
          named(one.name || one.id),
          host(state, one.host),
          t(`image_${one.state}`),
          one.start ? at(one.start) : '–',
          one.kept_until ? at(one.kept_until) : '–',
          one.detail ? named(readable(one.detail)) : '',
        ],
      }),
      empty: t('noImages'),
    }),
  );
