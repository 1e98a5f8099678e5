/** The line at the top of every generated page. */
export function generatedNotice(source: string): string {
  return `<!-- Generated from ${source} by \`npm run generate\`. Do not edit. -->`
}

export function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)].join('\n')
}
