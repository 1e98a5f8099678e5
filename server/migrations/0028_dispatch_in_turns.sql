-- Events leave the outbox by turns of their organisations: a million of one, of an import, do not keep others waiting. Those
-- of one organisation keep their order.
DROP INDEX portico.outbox_written;
CREATE INDEX outbox_turn ON portico.outbox (organization_id, written);

-- What is bound to one organisation cannot name the application of another one.
ALTER TABLE portico.webhook_subscription
  ADD FOREIGN KEY (organization_id, app_id) REFERENCES portico.organization (organization_id, app_id);
ALTER TABLE portico.operation
  ADD FOREIGN KEY (organization_id, app_id) REFERENCES portico.organization (organization_id, app_id);
