/** What is to be undone in the end, the last first. The helpers of the tests take it for a test. */
export class Scope {
  readonly #tasks: (() => unknown)[] = []
  #ending: Promise<void> | undefined

  teardown (task: () => unknown) {
    this.#tasks.push(task)
  }

  /** Undoes everything, even if a part of it fails. Whoever calls it waits for the end. */
  end () {
    this.#ending ??= this.#undo()
    return this.#ending
  }

  async #undo () {
    for (let task = this.#tasks.pop(); task; task = this.#tasks.pop()) {
      try {
        await task()
      } catch (error) {
        console.error(error)
      }
    }
  }
}
