import { connect } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import type { Measure } from './measures.ts'

/**
 * Before anything is timed: both servers must give the same JSON to the same question. Ids, times and cursors of what a
 * question creates differ, and nothing else may.
 */
export async function requireSameAnswers(
  measures: readonly Measure[],
  ports: { readonly service: number; readonly baseline: number },
): Promise<void> {
  for (const { name, service, baseline } of measures) {
    const answers = [await ask(ports.service, service[0]!), await ask(ports.baseline, baseline[0]!)] as const
    const reads = service[0]!.startsWith('GET') || service[0]!.includes('/search ')
    const [ours, bare] = answers.map((answer) => comparable(answer, !reads))
    // Without the difference of the two: to work it out for two contracts of 2 MB took all memory of the machine.
    if (!isDeepStrictEqual(ours, bare)) throw new Error(`The baseline answers differently to "${name}".`)
  }
}

function comparable(text: string, creates: boolean): unknown {
  return JSON.parse(text, (key, value: unknown) => {
    if (key === 'nextCursor') return typeof value
    return creates && /^(recordId|createdAt|updatedAt)$/.test(key) ? typeof value : value
  })
}

function ask(port: number, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' })
    let text = ''
    socket.setEncoding('utf8')
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('end', () => resolve(text.slice(text.indexOf('\r\n\r\n') + 4)))
    socket.on('error', reject)
    const head = request.indexOf('\r\n') + 2
    socket.write(`${request.slice(0, head)}Connection: close\r\n${request.slice(head)}`.replace('{unique}', 'compared'))
  })
}
