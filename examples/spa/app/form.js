import { ApiError, inSession, newKey } from './api.js'
import { h } from './dom.js'
import { notify, wordsOf } from './parts.js'
import { pictureField, takeDrops } from './picture.js'
import { draftOf, keepDraft } from './session.js'

/**
 * A field of a form. Its name is the field name of the API.
 *
 * @typedef {object} Field
 * @property {string} name
 * @property {string} label
 * @property {'text' | 'email' | 'password' | 'url' | 'number' | 'datetime-local' | 'textarea' | 'select' |
 *   'checkbox' | 'picture'} [type] the value of a `picture` is its URL; the value of a `checkbox` is `yes` or empty
 * @property {string | number | null} [value]
 * @property {string} [hint]
 * @property {boolean} [optional]
 * @property {string} [autocomplete]
 * @property {[value: string, label: string][]} [options] the options of a select
 */

/**
 * @typedef {object} Control
 * @property {Field} field
 * @property {HTMLElement} element
 * @property {string} shown the first value, as the control shows it
 * @property {() => string} read
 * @property {(value: string) => void} write
 * @property {() => void} focus
 * @property {(words?: string) => void} complain shows or removes an error
 * @property {() => boolean} [isIncomplete] whether the browser cannot read the typed text
 * @property {() => Promise<void> | null} [pending] the upload that runs. A new choice starts a new upload
 * @property {(file?: File) => unknown} [take] uploads a file
 */

/** The last date. Without it, Chromium takes the hours that are typed after a year for more digits of this year. */
const LAST_MINUTE = '9999-12-31T23:59'

/** The header with the key of a request, which is also its name in a draft. */
const KEY = 'Idempotency-Key'

let forms = 0

/**
 * Creates a form. An error of the service appears next to its field, or above the button if it has no field. The form
 * itself only refuses what the browser cannot read, such as a date without a time, because its value would be empty,
 * and numbers that are not whole.
 * All other rules exist only in the service.
 *
 * @param {object} description
 * @param {Field[]} description.fields
 * @param {string} description.verb the label of the button
 * @param {(values: Record<string, string>, once: { 'Idempotency-Key': string }) => Promise<unknown>} description.send
 * gets headers with which a request that is sent again after a lost response creates nothing twice
 * @param {HTMLElement} [description.more] what appears above the button
 * @param {() => void} [description.cancel]
 * @param {boolean} [description.isEdit] `send` gets only the changed fields, and is not called without changes. An
 * unchanged field keeps its exact value, even if its control cannot show all of it.
 * @param {string} [description.draft] a name under which the browser keeps what the user has typed, except passwords,
 * until it is sent
 */
export function form ({ fields, verb, send, cancel, isEdit = false, draft, more }) {
  const prefix = `form-${++forms}`
  const controls = fields.map(field => control(field, `${prefix}-${field.name}`))
  const problem = h('p', { class: 'problem', role: 'alert' })
  const button = h('button', { class: 'primary' }, verb)
  const restored = h('p', { class: 'hint' })

  // Also kept, because the user may come back to the form after a lost response.
  let key = (draft && draftOf(draft)?.[KEY]) || newKey()

  /** Whether all errors belong to fields. */
  let isAboutFields = false

  /** @param {unknown} error */
  function show (error) {
    // The user has left the form while it was sent.
    if (!element.isConnected) {
      notify(wordsOf(error), 'wrong')
      return cancel?.()
    }
    // The first try was stored, and the user has changed the text since.
    if (error instanceof ApiError && error.status === 422) {
      if (draft) keepDraft(draft, null)
      return problem.replaceChildren(
        'Your first try has been saved, so this one has not. Reload the page, then change what you find there.')
    }
    const issues = error instanceof ApiError ? error.fields : {}
    const wrong = controls.filter(({ field, complain }) => {
      const issue = issues[field.name]
      complain(issue && `${field.label} ${issue}`)
      return issue
    })
    const [first] = wrong
    // Errors of fields that are not in the form also appear above the button.
    const others = Object.entries(issues).filter(([name]) => !fields.some(field => field.name === name))
    isAboutFields = wrong.length > 0 && others.length === 0
    problem.replaceChildren([wordsOf(error), ...others.map(([name, issue]) => `${name} ${issue}`)].join(' '))
    first?.focus()
  }

  const changed = () => controls.filter(({ read, shown }) => read() !== shown)

  function keep () {
    if (!draft) return
    const typed = changed().filter(({ field }) => field.type !== 'password')
      .map(({ field, read }) => [field.name, read()])
    keepDraft(draft, typed.length > 0 ? { ...Object.fromEntries(typed), [KEY]: key } : null)
  }

  function restore () {
    const values = draft && draftOf(draft)
    if (!values) return
    for (const { field, write } of controls) if (values[field.name] !== undefined) write(values[field.name] ?? '')
    // The values may have been sent from a different form, or be saved already.
    if (changed().length === 0) return
    restored.replaceChildren('This is what you typed earlier. ', h('button', {
      type: 'button',
      onclick () {
        for (const { write, shown } of controls) write(shown)
        key = newKey()
        element.dispatchEvent(new Event('input'))
        restored.replaceChildren()
      },
    }, 'Start over'))
  }

  function refuseIncomplete () {
    const issues = controls.filter(({ isIncomplete }) => isIncomplete?.()).map(({ field: { name, type } }) => [
      name,
      type === 'number' ? 'must be a whole number' : 'must be a complete date and time, with a year of four digits',
    ])
    if (issues.length > 0) throw new ApiError('Please correct the marked fields.', 0, Object.fromEntries(issues))
  }

  /** Removes the error above the button as soon as the user has corrected all fields. */
  function forgive () {
    if (isAboutFields && !element.querySelector('.issue:not(:empty)')) problem.replaceChildren()
  }

  /** @type {HTMLFormElement} */
  const element = h('form', {
    novalidate: true,
    oninput () {
      keep()
      forgive()
    },
    onchange: keep,
    /** @param {SubmitEvent} event */
    async onsubmit (event) {
      event.preventDefault()
      if (button.ariaBusy === 'true') return
      button.ariaBusy = 'true'
      problem.replaceChildren()
      for (const { complain } of controls) complain()
      try {
        refuseIncomplete()
        for (const { pending } of controls) {
          // A newer choice of the user replaces the upload.
          while (pending?.()) await pending()
        }
        if (!element.isConnected) return cancel?.()
        const filled = isEdit ? changed() : controls
        if (filled.length === 0) return cancel?.()
        await inSession(() => send(
          Object.fromEntries(filled.map(({ field, read }) => [field.name, read()])), { [KEY]: key }))
        if (draft) keepDraft(draft, null)
      } catch (error) {
        show(error)
      } finally {
        button.ariaBusy = null
      }
    },
  },
  restored,
  ...controls.map(({ element }) => element),
  more,
  problem,
  h('div', { class: 'actions' }, cancel && h('button', { type: 'button', onclick: () => cancel() }, 'Cancel'), button))
  restore()
  const upload = controls.find(({ take }) => take)
  return upload?.take ? takeDrops(element, upload.take) : element
}

/**
 * @param {Field} field
 * @param {string} id
 * @returns {Control}
 */
function control (field, id) {
  const { name, label, type = 'text', value, hint, optional = false, autocomplete = 'off', options = [] } = field
  if (type === 'picture') {
    const picture = pictureField({ id, label, hint, optional, value: value == null ? null : String(value) })
    return {
      field,
      shown: picture.value,
      element: picture.element,
      read: () => picture.value,
      write: picture.set,
      focus: picture.focus,
      // An empty value is also not a URL, which the user does not have to know.
      complain: words => picture.complain(words && picture.value === '' ? 'Please choose a picture.' : words),
      pending: () => picture.pending,
      take: picture.take,
    }
  }
  const attributes = {
    id, name, autocomplete, required: !optional, 'aria-describedby': `${hint ? `${id}-hint ` : ''}${id}-issue`,
  }
  const input = makeInput()
  const issue = h('p', { class: 'issue', id: `${id}-issue` })
  const words = [
    h('label', { for: id }, label, optional && type !== 'checkbox' && h('span', {}, ' (optional)')),
    hint && h('p', { class: 'hint', id: `${id}-hint` }, hint),
  ]

  function makeInput () {
    if (type === 'textarea') return h('textarea', { ...attributes, rows: 8 }, value)
    if (type === 'checkbox') return h('input', { ...attributes, required: false, type, checked: Boolean(value) })
    if (type === 'datetime-local') return h('input', { ...attributes, type, value, max: LAST_MINUTE })
    if (type !== 'select') return h('input', { ...attributes, type, value })
    return h('select', attributes, ...options.map(([option, words]) =>
      h('option', { value: option, selected: option === value }, words)))
  }

  const read = () => input instanceof HTMLInputElement && type === 'checkbox'
    ? input.checked ? 'yes' : ''
    : input.value
  /** @param {string} [text] */
  function complain (text) {
    issue.replaceChildren(text ?? '')
    if (text) input.setAttribute('aria-invalid', 'true')
    else input.removeAttribute('aria-invalid')
  }
  // An error goes when the user corrects the field.
  input.addEventListener('input', () => complain())

  return {
    field,
    shown: read(),
    read,
    write (text) {
      if (input instanceof HTMLInputElement && type === 'checkbox') input.checked = text !== ''
      else input.value = text
    },
    focus: () => input.focus(),
    complain,
    isIncomplete () {
      const { badInput, rangeOverflow, stepMismatch } = input.validity
      return badInput || rangeOverflow || (type === 'number' && stepMismatch)
    },
    element: type === 'checkbox'
      ? h('div', { class: 'field check' }, input, ...words, issue)
      : h('div', { class: 'field' }, ...words, input, issue),
  }
}
