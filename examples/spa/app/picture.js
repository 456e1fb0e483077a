// Uploads pictures.
import { call, client, inSession, sendPicture } from './api.js'
import { h } from './dom.js'
import { actionButton, onDate, openDialog, wordsOf } from './parts.js'

/** @import { Schemas } from 'community-platform-client' */

/** @typedef {Pick<Schemas['Picture'], 'id' | 'url'>} Chosen */

const TYPES = 'image/jpeg,image/png,image/webp'

let uploads = 0

/**
 * A part of a page that uploads a picture: chosen as a file, dropped, pasted or taken by the camera of a phone. It also
 * offers the pictures that the user has uploaded before.
 *
 * @param {string} label
 * @param {(picture: Chosen) => unknown} chosen gets the picture when it is stored
 */
export function pictureUpload (label, chosen) {
  const id = `upload-${++uploads}`
  const preview = h('img', { alt: '', hidden: true })
  const bar = h('progress', { max: 1, value: 0, hidden: true, 'aria-label': 'Upload' })
  const words = h('p', { class: 'hint', role: 'status' })
  const problem = h('p', { class: 'issue', role: 'alert' })

  /** @param {File | undefined} file */
  async function take (file) {
    if (!file) return
    problem.replaceChildren()
    words.replaceChildren('Uploading …')
    const address = URL.createObjectURL(file)
    show(address)
    bar.hidden = false
    try {
      const { picture } = await inSession(() => sendPicture(file, part => { bar.value = part }))
      await use(picture)
      words.replaceChildren('The picture has been uploaded.')
    } catch (error) {
      preview.hidden = true
      words.replaceChildren()
      problem.replaceChildren(wordsOf(error))
    } finally {
      bar.hidden = true
      URL.revokeObjectURL(address)
    }
  }

  /** @param {string} address */
  function show (address) {
    preview.src = address
    preview.hidden = false
  }

  /** @param {Chosen} picture */
  async function use (picture) {
    show(`${picture.url}?width=480`)
    await chosen(picture)
  }

  /** @param {string} inputId @param {boolean} isCamera */
  const fileInput = (inputId, isCamera) => h('input', {
    id: inputId,
    type: 'file',
    accept: TYPES,
    capture: isCamera && 'environment',
    'aria-describedby': `${id}-hint`,
    /** @param {{ target: HTMLInputElement }} event */
    async onchange ({ target }) {
      await take(target.files?.[0])
      // The same file can be chosen again.
      target.value = ''
    },
  })

  return h('div', {
    class: 'field upload',
    /** @param {DragEvent} event */
    ondragover: event => event.preventDefault(),
    /** @param {DragEvent} event */
    ondrop (event) {
      event.preventDefault()
      return take(event.dataTransfer?.files[0])
    },
    /** @param {ClipboardEvent} event */
    onpaste: event => take(event.clipboardData?.files[0]),
  },
  h('label', { for: id }, label),
  h('p', { class: 'hint', id: `${id}-hint` }, 'Choose a JPEG, PNG or WebP file, drop it here, or paste it.'),
  fileInput(id, false),
  h('div', { class: 'camera' }, h('label', { for: `${id}-camera` }, 'Take a photo'), fileInput(`${id}-camera`, true)),
  preview, bar, words, problem,
  h('p', {}, actionButton('My earlier pictures', async () => {
    const picture = await chooseEarlier()
    if (picture) await use(picture)
  })))
}

/** Lets the user choose one of their earlier pictures. */
async function chooseEarlier () {
  const { pictures } = await call(client.GET('/me/pictures'))
  return /** @type {Promise<Chosen | undefined>} */ (openDialog('My pictures', close => [
    pictures.length === 0
      ? h('p', {}, 'You have not uploaded any pictures yet.')
      : h('ul', { class: 'pictures' }, ...pictures.map(({ id, url, createdAt }) => h('li', {},
        h('button', { type: 'button', onclick: () => close({ id, url }) },
          h('img', { src: `${url}?width=480`, alt: '', loading: 'lazy' }),
          h('span', {}, 'Picture of ', onDate(createdAt)))))),
    h('div', { class: 'actions' }, h('button', { type: 'button', onclick: () => close() }, 'Cancel')),
  ]))
}
