/** The part of a tap test that helpers use to clean up when it ends. */
export interface Teardown {
  teardown (task: () => unknown): void
}

/** Replaces a tap test outside tap. */
export class Scope implements Teardown {
  readonly #tasks: (() => unknown)[] = []
  #ending: Promise<void> | undefined

  teardown (task: () => unknown) {
    this.#tasks.push(task)
  }

  /** Creates a scope for a part of the work. It ends with this scope at the latest. */
  inner () {
    const scope = new Scope()
    this.teardown(() => scope.end())
    return scope
  }

  /** Runs all teardowns in reverse order, even if one fails. Every caller waits for the end. */
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
