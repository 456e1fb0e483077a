import { createHmac } from 'node:crypto'

import type { Config } from '../config/config.ts'
import { deriveKey } from '../config/secret-file.ts'

/**
 * Derives a token of 256 bits for a link in an email from these facts. So each attempt to send an email writes the same
 * link: the first copy may have arrived, and some mailboxes drop a second copy with the same Message-ID.
 */
export function linkToken ({ JWT_SECRET }: Pick<Config, 'JWT_SECRET'>, ...facts: string[]) {
  return createHmac('sha256', deriveKey(JWT_SECRET!, 'links in emails')).update(JSON.stringify(facts)).digest()
}
