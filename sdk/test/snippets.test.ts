import { execFile, spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { type SignatureVector, signOwn, vectors } from './signatures.ts'

/** The snippets of docs/webhooks-receiving.md, run as they stand there against the vectors. */
const run = promisify(execFile)
const docs = await readFile(join(import.meta.dirname, '../../docs/webhooks-receiving.md'), 'utf8')
const folder = await mkdtemp(join(tmpdir(), 'portico-snippets-'))
afterAll(() => rm(folder, { recursive: true }))

function snippet(language: string): string {
  const found = [...docs.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))]
  expect(found).toHaveLength(1)
  return found[0]![1]!
}

interface Case extends SignatureVector {
  readonly now: number
  readonly isGenuine: boolean
}

const first = vectors[0]!
const at = Number(first.timestamp)
const other = signOwn('whsec_other', first.timestamp, first.body)
const change = (note: string, isGenuine: boolean, changes: Partial<Case>): Case => ({
  ...first,
  now: at,
  ...changes,
  note,
  isGenuine,
})

const cases: readonly Case[] = [
  ...vectors.map((vector) => ({ ...vector, now: Number(vector.timestamp), isGenuine: true })),
  change('five minutes late', true, { now: at + 300 }),
  change('five minutes early', true, { now: at - 300 }),
  change('too late', false, { now: at + 301 }),
  change('too early', false, { now: at - 301 }),
  change('the new of two secrets', true, { signature: `${first.signature},${other}` }),
  change('the old of two secrets', true, { signature: `${other}, ${first.signature}` }),
  change('another body', false, { body: `${first.body} ` }),
  change('another secret', false, { secret: 'whsec_other' }),
  change('another timestamp', false, { timestamp: String(at + 1) }),
  change('no version', false, { signature: first.signature.slice(3) }),
  change('half a signature', false, { signature: first.signature.slice(0, 40) }),
  change('no signature', false, { signature: '' }),
  change('no timestamp', false, { timestamp: '' }),
  change('a timestamp that is no number', false, {
    timestamp: '1e9',
    signature: signOwn(first.secret, '1e9', first.body),
  }),
]
const expected = cases.map(({ note, isGenuine }) => [note, isGenuine])
const verdicts = (answers: readonly boolean[]) => cases.map(({ note }, index) => [note, answers[index]])

const missing = (program: string, ...args: string[]) => spawnSync(program, args).status !== 0
const file = async (name: string, text: string) => {
  await writeFile(join(folder, name), text)
  return join(folder, name)
}
const casesFile = await file('cases.json', JSON.stringify(cases))

describe.skipIf(missing('python3', '--version'))('Python (skipped where there is no python3)', () => {
  test('the snippet tells what is genuine', async () => {
    const driver = `
import json, sys
print(json.dumps([
    verify_webhook(
        {"x-service-timestamp": one["timestamp"], "x-service-signature": one["signature"]},
        one["body"].encode(), one["secret"], now=one["now"],
    )
    for one in json.load(open(sys.argv[1], encoding="utf-8"))
]))
`
    const { stdout } = await run('python3', [await file('verify.py', `${snippet('python')}${driver}`), casesFile])
    expect(verdicts(JSON.parse(stdout))).toEqual(expected)
  })
})

describe.skipIf(missing('go', 'version'))('Go (skipped where there is no go)', () => {
  test('the snippet tells what is genuine', { timeout: 180_000 }, async () => {
    const driver = `package main

import (
	"encoding/json"
	"os"
	"time"
)

func main() {
	var cases []struct{ Timestamp, Signature, Secret, Body string; Now int64 }
	file, _ := os.Open(os.Args[1])
	if err := json.NewDecoder(file).Decode(&cases); err != nil {
		panic(err)
	}
	answers := []bool{}
	for _, one := range cases {
		answers = append(answers, VerifyWebhook(one.Timestamp, one.Signature, []byte(one.Body), one.Secret, time.Unix(one.Now, 0)))
	}
	json.NewEncoder(os.Stdout).Encode(answers)
}
`
    const sources = [await file('verify.go', snippet('go')), await file('main.go', driver)]
    const env = { ...process.env, GOTOOLCHAIN: 'local', GOFLAGS: '', GO111MODULE: 'off' }
    const { stdout } = await run('go', ['run', ...sources, casesFile], { env })
    expect(verdicts(JSON.parse(stdout))).toEqual(expected)
  })
})

describe.skipIf(missing('bash', '--version') || missing('openssl', 'version'))(
  'Shell (skipped where there is no bash or openssl)',
  () => {
    test('the snippet tells what is genuine', async () => {
      const script = await file('verify.sh', `${snippet('bash')}\nverify_webhook "$@"\n`)
      const answers = cases.map(({ timestamp, signature, secret, now, body }) => {
        const { status, stderr } = spawnSync('bash', [script, timestamp, signature, secret, String(now)], {
          input: body,
        })
        expect(stderr.toString()).toBe('')
        return status === 0
      })
      expect(verdicts(answers)).toEqual(expected)
    })
  },
)
