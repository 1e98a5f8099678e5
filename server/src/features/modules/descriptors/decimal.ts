import Big from 'big.js'

/**
 * Exact decimals. Of its own constructor, so that nobody else's settings reach it. Only division is inexact; 40 digits are
 * more than any quotient of money and percentages needs to be told from the half that rounding turns on. `roundHalfUp`
 * of big.js rounds halves away from zero.
 */
export const Decimal = Big()
Decimal.DP = 40
Decimal.RM = Decimal.roundHalfUp

export type Decimal = Big
