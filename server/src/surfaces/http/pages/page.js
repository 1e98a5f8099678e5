// The script of the pages behind the links in mails. Runs in the browser as it stands; nothing here is compiled.
const form = document.querySelector('form')
const button = form.querySelector('button')
const problem = document.getElementById('problem')
const status = document.getElementById('status')
let isSending = false

const tokenOfLink = takeToken()
if (tokenOfLink === '') reveal(form.elements.token)
form.hidden = false
form.addEventListener('submit', submit)
document.getElementById('show').addEventListener('change', ({ target }) => {
  document.querySelector('[data-secret]').type = target.checked ? 'text' : 'password'
})
// The link is opened once more in this tab: only what is behind the # changes, so the browser loads nothing by itself.
window.addEventListener('hashchange', () => window.location.reload())

/** Takes the token out of the address, so that neither the history nor whoever looks at the screen has it. */
function takeToken() {
  const token = new URLSearchParams(window.location.hash.slice(1)).get('token') ?? ''
  history.replaceState(null, '', window.location.pathname)
  return token
}

async function submit(event) {
  event.preventDefault()
  if (isSending) return
  begin()
  try {
    const response = await fetch(form.dataset.operation, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(readFields()),
      credentials: 'omit',
      cache: 'no-store',
      redirect: 'error',
    })
    const answer = await response.json()
    if (response.ok) succeed(answer)
    else refuse(answer, Number(response.headers.get('retry-after')))
  } catch {
    problem.textContent = 'The service could not be reached, or its answer got lost. Try again.'
  }
  end()
}

function begin() {
  isSending = true
  // Not `disabled`: that would take the focus away from where it is.
  button.setAttribute('aria-disabled', 'true')
  status.textContent = 'One moment…'
  problem.textContent = ''
  for (const input of form.querySelectorAll('[aria-invalid]')) {
    input.removeAttribute('aria-invalid')
    problemOf(input).textContent = ''
  }
}

function end() {
  isSending = false
  button.removeAttribute('aria-disabled')
  status.textContent = ''
}

/** What is shown and filled in. Whoever copies the token may copy the whole link. */
function readFields() {
  const fields = { token: tokenOfLink }
  for (const input of form.querySelectorAll('input[name]')) {
    if (input.closest('div[hidden]')) continue
    const value = input.hasAttribute('data-secret') ? input.value : input.value.trim().replace(/^https?:.*#token=/, '')
    if (value === '') delete fields[input.name]
    else fields[input.name] = value
  }
  return fields
}

/** Says in words what is wrong, next to its field where it has one here. */
function refuse({ error, code, details = [], correlationId }, retryAfterSeconds) {
  const wrong = details.flatMap(({ field, message }) => {
    const input = form.elements.namedItem(field)
    return input && !(field === 'token' && tokenOfLink) ? [{ input, message }] : []
  })
  for (const input of form.querySelectorAll('[data-asked-by]')) {
    if (input.dataset.askedBy === code) wrong.push({ input, message: error })
  }
  for (const { input, message } of wrong) mark(input, message)
  wrong[0]?.input.focus()
  if (wrong.length > 0) problem.textContent = 'Please see to what is marked.'
  else problem.textContent = [error, whenAgain(retryAfterSeconds), reference(code, correlationId)].join('')
}

function mark(input, message) {
  reveal(input)
  input.setAttribute('aria-invalid', 'true')
  problemOf(input).textContent = message
}

function reveal(input) {
  const group = input.closest('div[hidden]')
  if (group) group.hidden = false
}

function problemOf(input) {
  return document.getElementById(`${input.id}-problem`)
}

function whenAgain(seconds) {
  if (!(seconds > 1)) return ''
  return seconds < 120 ? ` That is in ${seconds} seconds.` : ` That is in ${Math.ceil(seconds / 60)} minutes.`
}

function reference(code, correlationId) {
  return code === 'internal_error' ? ` (${correlationId})` : ''
}

/** What was asked goes, passwords with it; what follows comes in its place, with what the answer says of it. */
function succeed(answer) {
  const done = document.getElementById('done')
  for (const slot of done.querySelectorAll('[data-of]')) {
    const value = slot.dataset.of.split('.').reduce((from, name) => from[name], answer)
    if (slot instanceof HTMLInputElement) slot.value = value
    else slot.textContent = value
  }
  document.getElementById('ask').remove()
  done.hidden = false
  done.querySelector('h1').focus()
  document.title = done.querySelector('h1').textContent
}
