import { ApiError, inSession } from './api.js'
import { h } from './dom.js'
import { wordsOf } from './parts.js'
import { pictureUpload } from './picture.js'

/**
 * A field of a form. Its name is the field name of the API.
 *
 * @typedef {object} Field
 * @property {string} name
 * @property {string} label
 * @property {'text' | 'email' | 'password' | 'url' | 'number' | 'datetime-local' | 'textarea' | 'select' |
 *   'picture'} [type] a `picture` is its address, which an upload can fill in
 * @property {string | number | null} [value]
 * @property {string} [hint]
 * @property {boolean} [optional]
 * @property {string} [autocomplete]
 * @property {[value: string, label: string][]} [options] the options of a select
 */

let forms = 0

/**
 * Creates a form. An error of the service appears next to its field, or above the button if it has no field. The form
 * itself checks nothing, so the rules exist only in the service.
 *
 * @param {object} description
 * @param {Field[]} description.fields
 * @param {string} description.verb the label of the button
 * @param {(values: Record<string, string>) => Promise<unknown>} description.send
 * @param {() => void} [description.cancel]
 * @param {boolean} [description.isEdit] `send` gets only the changed fields, and is not called without changes. An
 * unchanged field keeps its exact value, even if its control cannot show all of it.
 */
export function form ({ fields, verb, send, cancel, isEdit = false }) {
  const prefix = `form-${++forms}`
  const controls = fields.map(field => control(field, `${prefix}-${field.name}`))
  const problem = h('p', { class: 'problem', role: 'alert' })
  const button = h('button', { class: 'primary' }, verb)

  /** @param {unknown} error */
  function show (error) {
    const issues = error instanceof ApiError ? error.fields : {}
    const wrong = controls.filter(({ field, complain }) => {
      const issue = issues[field.name]
      complain(issue && `${field.label} ${issue}`)
      return issue
    })
    const [first] = wrong
    // Errors of fields that are not in the form also appear above the button.
    const others = Object.entries(issues).filter(([name]) => !fields.some(field => field.name === name))
    problem.replaceChildren([wordsOf(error), ...others.map(([name, issue]) => `${name} ${issue}`)].join(' '))
    first?.input.focus()
  }

  return h('form', {
    novalidate: true,
    /** @param {SubmitEvent} event */
    async onsubmit (event) {
      event.preventDefault()
      if (button.ariaBusy === 'true') return
      button.ariaBusy = 'true'
      problem.replaceChildren()
      for (const { complain } of controls) complain()
      const filled = controls.filter(({ input, shown }) => !isEdit || input.value !== shown)
      try {
        if (filled.length === 0) return cancel?.()
        await inSession(() => send(Object.fromEntries(filled.map(({ field, input }) => [field.name, input.value]))))
      } catch (error) {
        show(error)
      } finally {
        button.ariaBusy = null
      }
    },
  },
  ...controls.map(({ element }) => element),
  problem,
  h('div', { class: 'actions' }, cancel && h('button', { type: 'button', onclick: () => cancel() }, 'Cancel'), button))
}

/**
 * @param {Field} field
 * @param {string} id
 */
function control (field, id) {
  const { name, label, type = 'text', value, hint, optional = false, autocomplete = 'off', options = [] } = field
  const attributes = {
    id, name, autocomplete, required: !optional, 'aria-describedby': `${hint ? `${id}-hint ` : ''}${id}-issue`,
  }
  const input = makeInput()
  const issue = h('p', { class: 'issue', id: `${id}-issue` })

  function makeInput () {
    if (type === 'textarea') return h('textarea', { ...attributes, rows: 8 }, value)
    if (type === 'picture') return h('input', { ...attributes, type: 'url', value })
    if (type !== 'select') return h('input', { ...attributes, type, value })
    return h('select', attributes, ...options.map(([option, words]) =>
      h('option', { value: option, selected: option === value }, words)))
  }

  return {
    field,
    input,
    /** The value as the control shows it. */
    shown: input.value,
    element: h('div', { class: 'field' },
      type === 'picture' && pictureUpload('Upload a picture', ({ url }) => { input.value = url }),
      h('label', { for: id }, label, optional && h('span', {}, ' (optional)')),
      hint && h('p', { class: 'hint', id: `${id}-hint` }, hint),
      input,
      issue),
    /** @param {string} [words] */
    complain (words) {
      issue.replaceChildren(words ?? '')
      if (words) input.setAttribute('aria-invalid', 'true')
      else input.removeAttribute('aria-invalid')
    },
  }
}
