// Fields for pictures, and uploads.
import { ApiError, call, client, inSession, newKey, sendPicture } from './api.js'
import { PICTURE_BYTES } from './config.js'
import { h } from './dom.js'
import { actionButton, confirmed, notify, onDate, openDialog, smallPicture, wordsOf } from './parts.js'
import { here } from './router.js'

/** @import { Schemas } from 'community-platform-client' */

/** @typedef {Pick<Schemas['Picture'], 'id' | 'url'>} Chosen */

const CANCELLED = new ApiError('You cancelled the upload, so nothing has been sent.')

const TYPES = ['image/jpeg', 'image/png', 'image/webp']

const megabytes = (/** @type {number} */ bytes, round = Math.floor) => `${round(bytes / 100_000) / 10} MB`

/**
 * A field that uploads a picture: chosen as a file, dropped, pasted or taken by the camera of a phone. It also offers
 * earlier pictures of the user. Its value is the URL of the picture.
 *
 * @param {object} description
 * @param {string} description.id
 * @param {string} description.label
 * @param {string | null} [description.value]
 * @param {string} [description.hint]
 * @param {boolean} [description.optional]
 * @param {(picture: Chosen) => unknown} [description.chosen] gets a picture when it is stored. Without it, the user can
 * also enter the URL of a picture elsewhere
 */
export function pictureField ({ id, label, value, hint, optional = false, chosen }) {
  const preview = h('img', { alt: '' })
  const bar = h('progress', { max: 1, value: 0, 'aria-label': 'Upload' })
  const words = h('p', { class: 'hint', role: 'status' })
  const issue = h('p', { class: 'issue', id: `${id}-issue`, role: 'alert' })
  const cancel = h('button', { type: 'button', onclick: () => stop(CANCELLED) }, 'Cancel the upload')
  const remove = h('button', { type: 'button', onclick: () => set('') }, 'Remove the picture')
  const address = h('input', { type: 'url', id: `${id}-address` })
  const elsewhere = h('details', { class: 'elsewhere' },
    h('summary', {}, 'Use an address instead'),
    h('label', { for: `${id}-address` }, 'Address of the picture'), address)
  const choose = fileInput(id, false)
  const camera = fileInput(`${id}-camera`, true)
  const field = {
    value: '',
    /** The upload that runs. Rejects if it fails. */
    pending: /** @type {Promise<void> | null} */ (null),
    take,
    set,
    /** @param {string} [text] */
    complain: text => issue.replaceChildren(text ?? ''),
    focus: () => choose.focus(),
    element: h('div', { class: 'field upload' },
      h('label', { for: id }, label, optional && h('span', {}, ' (optional)')),
      hint && h('p', { class: 'hint' }, hint),
      preview,
      h('div', { class: 'actions' },
        // The browser's own text would say "No file chosen" after an upload.
        h('label', { class: 'button', for: id, 'aria-hidden': 'true' }, 'Choose a picture'), choose,
        h('label', { class: 'button camera', for: `${id}-camera`, 'aria-hidden': 'true' }, 'Take a photo'), camera,
        actionButton('My earlier pictures', async () => {
          const picture = await chooseEarlier()
          if (picture) await use(picture)
        }),
        remove, cancel),
      h('p', { class: 'hint', id: `${id}-hint` },
        `JPEG, PNG or WebP, at most ${megabytes(PICTURE_BYTES)}. You can also drop it here, or paste it.`),
      bar, words, issue,
      !chosen && elsewhere),
  }
  address.addEventListener('input', () => {
    stop()
    field.value = address.value
    showValue()
  })
  let abort = new AbortController()
  set(value ?? '')
  bar.hidden = cancel.hidden = true
  return field

  /** @param {string} text */
  function set (text) {
    stop()
    field.value = text
    address.value = text.startsWith('data:') ? '' : text
    showValue()
    field.element.dispatchEvent(new Event('input', { bubbles: true }))
  }

  function showValue () {
    const { value } = field
    preview.hidden = value === ''
    if (value !== '') preview.src = smallPicture(value)
    remove.hidden = !optional || value === ''
  }

  /**
   * Stops the upload that runs.
   *
   * @param {ApiError} [reason] the error of a form that waits for the upload; without it, the form continues
   */
  function stop (reason) {
    abort?.abort(reason)
    abort = new AbortController()
    field.pending = null
    bar.hidden = cancel.hidden = true
    words.replaceChildren()
    issue.replaceChildren()
    showValue()
  }

  /**
   * Uploads a file. A newer choice of the user cancels the upload.
   *
   * @param {File | undefined} file
   */
  function take (file) {
    if (!file) return
    stop()
    if (!TYPES.includes(file.type)) return issue.replaceChildren('Please choose a JPEG, PNG or WebP picture.')
    if (file.size > PICTURE_BYTES) {
      return issue.replaceChildren(
        `This picture has ${megabytes(file.size, Math.ceil)}. It can have at most ${megabytes(PICTURE_BYTES)}.`)
    }
    field.pending = upload(file, abort.signal)
    // The form waits for it. Without a form, the message is next to the field.
    field.pending.catch(() => {})
  }

  /** @param {File} file @param {AbortSignal} signal */
  async function upload (file, signal) {
    const local = URL.createObjectURL(file)
    preview.src = local
    preview.hidden = bar.hidden = cancel.hidden = false
    bar.value = 0
    words.replaceChildren('Uploading …')
    try {
      const { picture } = await inSession(() => sendPicture(file, part => { bar.value = part }, signal, keyOf(file)))
      sent.delete(idOf(file))
      if (signal.aborted) return
      await use(picture)
      words.replaceChildren('The picture has been uploaded.')
    } catch (error) {
      if (signal.reason instanceof ApiError) throw signal.reason
      if (signal.aborted) return
      stop()
      issue.replaceChildren(wordsOf(error))
      throw error
    } finally {
      URL.revokeObjectURL(local)
    }
  }

  /** @param {Chosen} picture */
  async function use (picture) {
    set(picture.url)
    await chosen?.(picture)
  }

  /** @param {string} inputId @param {boolean} isCamera */
  function fileInput (inputId, isCamera) {
    return h('input', {
      id: inputId,
      class: 'unseen',
      type: 'file',
      accept: TYPES.join(),
      capture: isCamera && 'environment',
      'aria-label': `${isCamera ? 'Take a photo' : 'Choose a picture'}: ${label}`,
      'aria-describedby': `${id}-hint ${id}-issue`,
      /** @param {{ target: HTMLInputElement }} event */
      onchange ({ target }) {
        take(target.files?.[0])
        // The same file can be chosen again.
        target.value = ''
      },
    })
  }
}

/**
 * The keys of files whose upload got no response. The same file gets the same key when the user chooses it again.
 *
 * @type {Map<string, string>}
 */
const sent = new Map()

/** @param {File} file */
const idOf = ({ name, size, lastModified }) => `${name} ${size} ${lastModified}`

/** @param {File} file */
function keyOf (file) {
  const key = sent.get(idOf(file)) ?? newKey()
  sent.set(idOf(file), key)
  return key
}

/**
 * Lets the user drop or paste a picture anywhere on an element.
 *
 * @template {HTMLElement} E
 * @param {E} element
 * @param {(file: File | undefined) => unknown} take
 */
export function takeDrops (element, take) {
  element.addEventListener('dragover', event => {
    // The browser itself moves a text.
    if (event.dataTransfer?.types.includes('Files')) event.preventDefault()
  })
  element.addEventListener('drop', event => {
    if (!event.dataTransfer?.types.includes('Files')) return
    event.preventDefault()
    take(event.dataTransfer.files[0])
  })
  element.addEventListener('paste', ({ clipboardData }) => {
    // A text that was copied in an office program comes with a picture of it.
    const isText = ['text/plain', 'text/html'].every(type => clipboardData?.types.includes(type))
    if (!isText) take(clipboardData?.files[0])
  })
  return element
}

/** Lets the user choose one of their earlier pictures. */
async function chooseEarlier () {
  const page = here()
  const { pictures } = await call(client.GET('/me/pictures'))
  if (here() !== page) return
  return /** @type {Promise<Chosen | undefined>} */ (openDialog('My pictures', close => [
    pictures.length === 0
      ? h('p', {}, 'You have not uploaded any pictures yet.')
      : h('ul', { class: 'pictures' }, ...pictures.map(({ id, url, createdAt }) => {
        const words = h('span', { id: `picture-${id}` }, 'Picture of ', onDate(createdAt))
        const item = h('li', {},
          h('button', { type: 'button', onclick: () => close({ id, url }) },
            h('img', { src: `${url}?width=480`, alt: '', loading: 'lazy' }), words),
          actionButton('Delete', async () => {
            if (await isDeleted(id)) item.remove()
          }, { class: 'danger', 'aria-describedby': words.id }))
        return item
      })),
    h('div', { class: 'actions' }, h('button', { type: 'button', onclick: () => close() }, 'Cancel')),
  ]))
}

/**
 * Deletes a picture after a question, which names the places that show it. Returns whether it was deleted.
 *
 * @param {string} id
 */
async function isDeleted (id) {
  const path = { id }
  const { pictures } = await call(client.GET('/me/pictures'))
  const uses = pictures.find(picture => picture.id === id)?.uses ?? []
  const text = uses.length === 0
    ? "You can't undo this."
    : `It is still shown: ${uses.map(({ kind, name }) => `${kind} “${name}”`).join(', ')}. There, it will be missing.`
  if (!await confirmed('Delete this picture?', text, 'Delete')) return false
  await call(client.DELETE('/me/pictures/{id}', { params: { path, query: { force: String(uses.length > 0) } } }))
  notify('The picture has been deleted.')
  return true
}
