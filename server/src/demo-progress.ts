import { readFile, rename, rm, writeFile } from 'node:fs/promises'

/**
 * What an unfinished demo has come to. Its tokens and passwords exist in clear nowhere but here until `demo.json` is
 * written, so a first start that is killed in the middle would otherwise leave a database that nobody can enter.
 */
export interface DemoProgress {
  /** What an earlier start made, or was about to make, under this name. */
  recall<T>(name: string): T | undefined
  /** To be called before the transaction that makes it commits: what is there is known, what is known may be missing. */
  keep(name: string, value: unknown): Promise<void>
  /** The demo is whole. */
  forget(): Promise<void>
}

export async function openProgress(path: string): Promise<DemoProgress> {
  const kept = await readKept(path)
  return {
    recall: <T>(name: string) => kept[name] as T | undefined,
    async keep(name, value) {
      kept[name] = value
      await writeFile(`${path}.new`, JSON.stringify(kept), { mode: 0o600, flush: true })
      await rename(`${path}.new`, path)
    },
    forget: () => rm(path, { force: true }),
  }
}

async function readKept(path: string): Promise<Record<string, unknown>> {
  try {
    return JSON.parse(await readFile(path, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw error
  }
}
