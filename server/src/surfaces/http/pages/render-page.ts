import type { Field, LinkPage } from './link-page-texts.ts'

/** Writes a page. All of it is text of this folder: nothing that came with a request, or from the database, is in it. */
export function renderPage(path: string, operationPath: string, page: LinkPage): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="robots" content="noindex" />
    <title>${page.title}</title>
    <link rel="stylesheet" href="${path}/page.css" />
    <script src="${path}/page.js" defer></script>
  </head>
  <body>
    <main>
      <div id="ask">
        <h1>${page.title}</h1>
        <p>${page.introduction}</p>
        <noscript><p>This page needs JavaScript.</p></noscript>
        <form data-operation="${operationPath}" novalidate hidden>
          ${[...page.fields.map(renderField), showPassword].join('\n')}
          <button type="submit">${page.button}</button>
          <p id="problem" class="problem" role="alert"></p>
          <p id="status" class="hint" role="status"></p>
        </form>
        <p class="hint last">${page.aboutLink}</p>
      </div>
      <section id="done" hidden>
        <h1 tabindex="-1">${page.done.title}</h1>
        ${page.done.paragraphs.map((paragraph) => `<p>${paragraph}</p>`).join('\n')}
      </section>
    </main>
  </body>
</html>
`
}

const showPassword = '<label class="choice"><input type="checkbox" id="show" /> Show the password</label>'

/** A hidden field appears when the answer asks for it; fields of one group appear together. */
function renderField(field: Field): string {
  if ('together' in field) return `<div hidden>${field.together.map(renderField).join('\n')}</div>`
  const { name, label, hint, attributes, hidden } = field
  return `<div${hidden ? ' hidden' : ''}>
    <label for="${name}">${label}</label>
    <p class="hint" id="${name}-hint">${hint}</p>
    <input id="${name}" name="${name}" ${attributes} aria-describedby="${name}-hint ${name}-problem" />
    <p class="problem" id="${name}-problem"></p>
  </div>`
}
