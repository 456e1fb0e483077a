/**
 * Makes a function that runs reads so that callers share them. A call starts the read, unless one of the same key runs
 * already: then it waits for that to end and shares the next one with everybody else who waits. So nobody is answered
 * by a read that began before they asked, and never more than one of a key runs at a time.
 */
export function joinReads<T> () {
  const running = new Map<string, { ended: Promise<void>, next?: Promise<T> }>()

  return function join (key: string, read: () => Promise<T>): Promise<T> {
    const current = running.get(key)
    if (!current) return start(key, read)
    current.next ??= current.ended.then(() => start(key, read))
    return current.next
  }

  function start (key: string, read: () => Promise<T>) {
    // So that what it throws is a rejection as well.
    const result = (async () => read())()
    const current = { ended: result.then(end, end), next: undefined }
    running.set(key, current)
    return result

    function end () {
      if (!current.next) running.delete(key)
    }
  }
}
