import type { SendMailOptions } from 'nodemailer'

/** The outcome of a delivery. `pending` means that it should be retried. */
export interface Delivery {
  status: 'sent' | 'pending' | 'failed'
  /** The cause, without the server's text, because it may contain the address. */
  error?: string
  /** Whether the email may have arrived although there was no response. */
  mayHaveArrived?: boolean
  /** Whether the server is unavailable, so that other emails would also fail. */
  isDown?: boolean
}

/** A way to send emails. */
export interface Transport {
  /** Checks whether the server is available. Rejects with the cause. */
  verify (): Promise<void>
  /** Sends an email. Never rejects. */
  send (message: SendMailOptions): Promise<Delivery>
  /** Closes all connections, even during a delivery. */
  close (): void
}
