import Type from 'typebox'
import { Strict } from '../../../kernel/schemas.ts'
import { defineModule } from '../module.ts'
import { amountsOf, currency } from './currency.ts'
import {
  AssetId,
  boolean,
  decimal,
  list,
  longText,
  reference,
  select,
  state,
  stateTime,
  tags,
  text,
  url,
} from './fields.ts'

const Image = Strict({
  assetId: AssetId,
  alt: Type.Optional(
    Type.String({ maxLength: 300, description: 'What it shows, in words.', examples: ['The machine from the front'] }),
  ),
})

const Attribute = Strict({
  name: Type.String({ minLength: 1, maxLength: 100, description: 'What is told.', examples: ['Colour'] }),
  value: Type.String({ minLength: 1, maxLength: 300, description: 'What it is.', examples: ['Red'] }),
})

export const products = defineModule({
  key: 'products',
  label: 'Product',
  pluralLabel: 'Products',
  description: 'Goods and services that the organization sells, with prices and stock.',
  nameField: 'name',
  subtitleFields: ['sku', 'category', 'brand'],
  fields: [
    text('name', 'Name', 'What it is called, at most 255 characters.', 'Espresso machine', {
      required: true,
      minLength: 1,
      maxLength: 255,
      indexed: true,
      searchable: true,
    }),
    text('sku', 'Article number', 'What the organization calls it; unique.', 'ESP-100', {
      unique: true,
      maxLength: 100,
      searchable: true,
    }),
    text('barcode', 'Barcode', 'Its GTIN: 8, 12, 13 or 14 digits.', '9001234567894', {
      pattern: '[0-9]{8}|[0-9]{12,14}',
      maxLength: 14,
      indexed: true,
      searchable: true,
    }),
    state('status', 'Status', 'Is it sold?', { draft: 'Draft', active: 'Active', discontinued: 'Discontinued' }),
    select(
      'productType',
      'Type',
      'What is sold.',
      { goods: 'Goods', service: 'Service', digital: 'Digital', subscription: 'Subscription' },
      { default: 'goods', indexed: true },
    ),
    longText('description', 'Description', 'What buyers should know, in Markdown.', 'Two groups, 11 litres.', {
      searchable: true,
    }),
    text('category', 'Category', 'What it belongs to, at most 200 characters.', 'Kitchen / Coffee', {
      maxLength: 200,
      indexed: true,
      searchable: true,
    }),
    text('brand', 'Brand', 'Whose it is, at most 100 characters.', 'Vesuvio', {
      maxLength: 100,
      indexed: true,
      searchable: true,
    }),
    decimal('price', 'Price', 'Price of one unit, in `currency`, as lines take it.', '450.00', {
      minimum: 0,
      scale: 4,
      indexed: true,
    }),
    decimal('compareAtPrice', 'Former price', 'What it cost before, in `currency`.', '520.00', {
      minimum: 0,
      scale: 4,
    }),
    decimal('cost', 'Cost', 'What one unit costs the organization, in `currency`.', '280.00', { minimum: 0, scale: 4 }),
    currency({ indexed: true }),
    decimal('taxPercent', 'Tax', 'The tax that is usually charged on it, in per cent.', '20', {
      minimum: 0,
      maximum: 100,
      scale: 4,
    }),
    select(
      'billingPeriod',
      'Billed',
      'How often the price is charged.',
      { once: 'Once', day: 'Daily', week: 'Weekly', month: 'Monthly', quarter: 'Quarterly', year: 'Yearly' },
      { default: 'once', indexed: true },
    ),
    text('unit', 'Unit', 'What is counted, at most 20 characters.', 'piece', { maxLength: 20 }),
    boolean('tracksStock', 'Tracks stock', 'Is its stock counted?', true, { default: false }),
    decimal('stockQuantity', 'Stock', 'How many there are, in its unit; below zero when oversold.', '24', {
      scale: 6,
      indexed: true,
    }),
    decimal('weightKilograms', 'Weight', 'Weight of one unit with packaging, in kilograms.', '18.5', {
      minimum: 0,
      scale: 6,
    }),
    list('images', 'Images', 'Pictures, the main one first.', Image, 50, [
      { assetId: '0199a1b2-0000-7000-8000-0000000000ab', alt: 'The machine from the front' },
    ]),
    list('attributes', 'Attributes', 'Colour, size and the like.', Attribute, 50, [{ name: 'Colour', value: 'Red' }]),
    url('url', 'Page', 'Where it is on the web.', 'https://shop.example/esp-100'),
    reference('variantOfId', 'Variant of', 'The product that it is a variant of.', 'products'),
    reference('supplierId', 'Supplier', 'The company that delivers it.', 'companies'),
    stateTime('launchedAt', 'Launched at', 'When it was first sold.'),
    stateTime('discontinuedAt', 'Discontinued at', 'Since when it is no longer sold.'),
    tags(),
  ],
  states: {
    field: 'status',
    initial: 'draft',
    transitions: { draft: ['active'], active: ['draft', 'discontinued'], discontinued: ['active'] },
    createdIn: ['active', 'discontinued'],
    times: {
      launchedAt: { entering: ['active', 'discontinued'], clearedIn: ['draft'] },
      discontinuedAt: { entering: ['discontinued'], clearedIn: ['draft', 'active'] },
    },
  },
  derive: (after) => amountsOf(after, 'price', 'compareAtPrice', 'cost'),
  relationships: [
    {
      relationshipKey: 'products_accessories',
      label: 'Accessories',
      inverseLabel: 'Accessory of',
      to: 'products',
      cardinality: 'many-to-many',
    },
    {
      relationshipKey: 'products_articles',
      label: 'Articles',
      inverseLabel: 'About products',
      to: 'knowledge-articles',
      cardinality: 'many-to-many',
    },
  ],
})
