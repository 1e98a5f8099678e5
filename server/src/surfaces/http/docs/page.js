// The script of /docs. Runs in the browser as it stands; nothing here is compiled.
const entry = document.getElementById('entry')
const form = document.getElementById('credential')
const problem = document.getElementById('problem')

form.addEventListener('submit', async (event) => {
  event.preventDefault()
  problem.hidden = true
  const token = form.elements.token.value.trim()
  const saasAppId = form.elements.saasAppId.value.trim()
  try {
    show(await fetchContract(saasAppId, token), token)
  } catch (error) {
    problem.textContent = error.message
    problem.hidden = false
  }
})

/** The contract of the application, or without one that of the platform. */
async function fetchContract(saasAppId, token) {
  const family = saasAppId === '' ? 'platform' : `apps/${encodeURIComponent(saasAppId)}`
  const response = await fetch(`/v1/${family}/openapi.json`, {
    headers: { authorization: `Bearer ${token}` },
    cache: 'no-store',
  })
  const body = await response.json()
  if (!response.ok) throw new Error(`${body.error} (${body.code}, correlation id ${body.correlationId})`)
  return body
}

/** Hands the contract to Scalar, with everything that would leave this origin or outlive this page turned off. */
function show(contract, token) {
  entry.remove()
  const schemes = Object.entries(contract.components?.securitySchemes ?? {})
  const ofToken = ([, { bearerFormat }]) => token.startsWith(bearerFormat.replace('…', ''))
  window.Scalar.createApiReference('#reference', {
    content: contract,
    authentication: {
      preferredSecurityScheme: (schemes.find(ofToken) ?? schemes[0])?.[0],
      securitySchemes: Object.fromEntries(schemes.map(([name]) => [name, { token }])),
    },
    // Requests of the page's own client go to where the page came from, whatever name the contract gives the service.
    baseServerURL: window.location.origin,
    servers: [{ url: window.location.origin }],
    persistAuth: false,
    telemetry: false,
    withDefaultFonts: false,
    hideClientButton: true,
    showDeveloperTools: 'never',
    agent: { disabled: true },
    mcp: { disabled: true },
  })
}
