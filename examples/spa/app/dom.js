// Creates elements. Text is never parsed as HTML.

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => unknown)>} Attributes */

const SVG = 'http://www.w3.org/2000/svg'

/**
 * Creates an element. Function attributes, such as `onclick`, become listeners. `true` creates an attribute without a
 * value. Attributes and children that are `false`, `null` or `undefined` are skipped.
 *
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Attributes} [attributes]
 * @param {...Child} children
 */
export function h (name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children)
}

/**
 * Creates an SVG element like `h`.
 *
 * @template {keyof SVGElementTagNameMap} Name
 * @param {Name} name
 * @param {Attributes} [attributes]
 * @param {...Child} children
 */
export function svg (name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children)
}

/**
 * @template {Element} E
 * @param {E} element
 * @param {Attributes} attributes
 * @param {Child[]} children
 */
function fill (element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue
    if (typeof value === 'function') element.addEventListener(name.slice(2), value)
    else element.setAttribute(name, value === true ? '' : String(value))
  }
  for (const child of children) {
    if (child === false || child === null || child === undefined) continue
    element.append(child instanceof Node ? child : String(child))
  }
  return element
}

/**
 * Tells whether a URL from a user is an http(s) URL, and not a script.
 *
 * @param {string | null | undefined} address
 */
export function isWeb (address) {
  return Boolean(address) && URL.canParse(String(address)) && /^https?:$/.test(new URL(String(address)).protocol)
}
