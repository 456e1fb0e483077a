/** Returns a client of queues in this network. */
export const clientIn = (network: string, isWanted = () => true) => ({ network, isWanted })
