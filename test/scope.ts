/** What the helpers use of a tap test: everything that they make is gone when it ends. */
export interface Teardown {
  teardown (task: () => unknown): void
}

/** Takes the place of a test for the helpers. */
export class Scope implements Teardown {
  readonly #tasks: (() => unknown)[] = []
  #ending: Promise<void> | undefined

  teardown (task: () => unknown) {
    this.#tasks.push(task)
  }

  /** Undoes everything, the last first, even if a part of it fails. Every caller waits for the end. */
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
        process.exitCode = 1
      }
    }
  }
}
