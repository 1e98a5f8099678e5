/** Tells how a long piece of work goes: a bar where somebody watches, a line every few seconds where nobody does. */
export interface Progress {
  /** `count` more are done. */
  add(count: number): void
  end(): void
}

const barWidth = 30
const barEveryMs = 100
const lineEveryMs = 2_000

export function startProgress(
  output: NodeJS.WriteStream,
  { total, done }: { readonly total: number; readonly done: number },
): Progress {
  const started = performance.now()
  let processed = 0
  let shownAt = Number.NEGATIVE_INFINITY

  function show(): void {
    shownAt = performance.now()
    const at = done + processed
    const elapsedSeconds = (shownAt - started) / 1000
    const rate = elapsedSeconds > 0 ? processed / elapsedSeconds : 0
    const eta =
      at >= total ? `${seconds(elapsedSeconds)} in all` : `ETA ${rate > 0 ? seconds((total - at) / rate) : '?'}`
    const percent = total === 0 ? 100 : Math.floor((at / total) * 100)
    const text = `${number(at)}/${number(total)}  ${percent} %  ${number(rate)} records/s  ${eta}`
    if (!output.isTTY) return void output.write(`  ${text}\n`)
    const filled = Math.round((percent / 100) * barWidth)
    output.write(`\r  [${'█'.repeat(filled)}${'░'.repeat(barWidth - filled)}] ${text}\x1b[K`)
  }

  return {
    add(count) {
      processed += count
      if (performance.now() - shownAt >= (output.isTTY ? barEveryMs : lineEveryMs)) show()
    },
    end() {
      show()
      if (output.isTTY) output.write('\n')
    },
  }
}

export const number = (value: number) => Math.round(value).toLocaleString('en')

function seconds(value: number): string {
  return value < 60 ? `${value.toFixed(1)} s` : `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`
}
