import type { Json } from './json-schema.ts'

/**
 * The filter language as a recursive schema, for readers and generated clients. What is accepted is decided where records
 * are searched, which also knows the fields and what each of them takes.
 */
export function filterSchemas(operators: readonly unknown[]): Readonly<Record<string, Json>> {
  const below = { $ref: '#/components/schemas/Filter' }
  const list = (description: string) => ({ type: 'array', minItems: 1, items: below, description })
  return {
    FilterAnd: node('Fulfilled where all of the conditions are.', { and: list('The conditions.') }),
    FilterOr: node('Fulfilled where one of the conditions is.', { or: list('The conditions.') }),
    FilterNot: node('Fulfilled where the condition is not.', { not: { ...below, description: 'The condition.' } }),
    FilterRelated: node('Fulfilled where a related record fulfils the condition. One hop, not further.', {
      related: {
        type: 'string',
        description:
          'The key of a reference field, or of a relationship; `inverse:<key>` follows it from its `to` end.',
        examples: ['company'],
      },
      some: { ...below, description: 'What one of them must fulfil.' },
    }),
    FilterComparison: node(
      'Compares a field with a value.',
      {
        field: {
          type: 'string',
          description: 'The key of a field, or a name that every record has, such as `createdAt`.',
          examples: ['createdAt'],
        },
        op: { type: 'string', enum: operators, description: 'How to compare. Each type of field takes some of these.' },
        value: {
          description:
            'The value; a list for `in`, `notIn`, `between`, `containsAny` and `containsAll`; none for `isNull` and `isNotNull`.',
          examples: ['2026-01-01T00:00:00.000Z'],
        },
      },
      ['field', 'op'],
    ),
    Filter: {
      description: 'What records must fulfil: at most 5 levels and 50 comparisons.',
      oneOf: ['And', 'Or', 'Not', 'Related', 'Comparison'].map((name) => ({
        $ref: `#/components/schemas/Filter${name}`,
      })),
    },
  }
}

function node(description: string, properties: Json, required = Object.keys(properties)): Json {
  return { type: 'object', description, properties, required, additionalProperties: false }
}
