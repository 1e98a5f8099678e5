import { activities } from './descriptors/activities.ts'
import { appointments } from './descriptors/appointments.ts'
import { calendarEvents } from './descriptors/calendar-events.ts'
import { companies } from './descriptors/companies.ts'
import { contacts } from './descriptors/contacts.ts'
import { deals } from './descriptors/deals.ts'
import { documents } from './descriptors/documents.ts'
import { inbox } from './descriptors/inbox.ts'
import { invoices } from './descriptors/invoices.ts'
import { knowledgeArticles } from './descriptors/knowledge-articles.ts'
import { leads } from './descriptors/leads.ts'
import { notes } from './descriptors/notes.ts'
import { orders } from './descriptors/orders.ts'
import { payments } from './descriptors/payments.ts'
import { products } from './descriptors/products.ts'
import { projects } from './descriptors/projects.ts'
import { quotes } from './descriptors/quotes.ts'
import { tasks } from './descriptors/tasks.ts'
import { tickets } from './descriptors/tickets.ts'
import type { Module } from './module.ts'

/** The native modules of every application, in the order in which the contract names them. */
export const modules: readonly Module[] = [
  contacts,
  companies,
  leads,
  deals,
  tasks,
  notes,
  activities,
  calendarEvents,
  appointments,
  inbox,
  tickets,
  products,
  quotes,
  orders,
  invoices,
  payments,
  documents,
  projects,
  knowledgeArticles,
]
