import { Type } from '@sinclair/typebox'

import { IdParam, Media, PictureNotFound } from '../../lib/values/schemas.ts'

export const read = {
  operationId: 'getPicture',
  summary: 'Get a picture',
  description: 'Anyone with the URL can load the picture. Browsers and CDNs keep it for a year, because it never ' +
    'changes.',
  checkedByHandler: {
    params: Type.Object({ id: IdParam('The id of the picture.') }),
    querystring: Type.Object({
      width: Type.Optional(Type.String({
        description: 'The width you need in pixels. For 480 or less you get the small version, which is at most 480 ' +
          'pixels wide. Otherwise you get the large version.',
        examples: ['480'],
      })),
    }),
  },
  response: {
    200: Media('image/webp', { description: 'The picture in WebP, without metadata.', examples: ['RIFF…WEBP…'] }),
    404: PictureNotFound,
  },
}
