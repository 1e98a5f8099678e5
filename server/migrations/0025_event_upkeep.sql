-- Upkeep of what 0020 made: partitions by week, 30 days of history, and what deliveries count for.

CREATE OR REPLACE FUNCTION portico.maintain_partitions(today date) RETURNS void
LANGUAGE plpgsql SET search_path = ''
AS $$
DECLARE
  plan record;
  starts date;
  child record;
  kept_since timestamptz := (today - 30)::timestamp AT TIME ZONE 'UTC';
BEGIN
  FOR plan IN
    SELECT * FROM (VALUES
      ('idempotency_key', interval '1 day', 3, interval '2 days'),
      ('request_log', interval '1 day', 3, interval '8 days'),
      ('record_history', interval '1 month', 3, NULL)) AS p (parent, span, ahead, keep)
  LOOP
    FOR step IN 0..plan.ahead LOOP
      starts := pg_catalog.date_trunc(CASE plan.span WHEN interval '1 day' THEN 'day' ELSE 'month' END, today) + step * plan.span;
      EXECUTE pg_catalog.format('CREATE TABLE IF NOT EXISTS portico.%I PARTITION OF portico.%I FOR VALUES FROM (%L) TO (%L)',
        plan.parent || '_' || pg_catalog.to_char(starts, 'YYYYMMDD'), plan.parent,
        starts || ' 00:00:00+00', (starts + plan.span)::date || ' 00:00:00+00');
    END LOOP;
    FOR child IN
      SELECT c.relname FROM pg_catalog.pg_inherits i
      JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = ('portico.' || plan.parent)::pg_catalog.regclass
        AND pg_catalog.to_date(pg_catalog.right(c.relname, 8), 'YYYYMMDD') < today - plan.keep
    LOOP
      EXECUTE pg_catalog.format('DROP TABLE portico.%I', child.relname);
    END LOOP;
  END LOOP;
  -- Those of deliveries and events are found by the ids in them.
  PERFORM portico.keep_partitions('event', today::timestamp AT TIME ZONE 'UTC', kept_since);
  PERFORM portico.keep_partitions('webhook_delivery', today::timestamp AT TIME ZONE 'UTC', kept_since);
  DELETE FROM ONLY portico.event_other WHERE occurred_at < kept_since;
  DELETE FROM ONLY portico.webhook_delivery_other WHERE created_at < kept_since;
END $$;

-- Attempts to deliver, by day (UTC) and application: what usage tells of deliveries (shared/usage).
CREATE TABLE portico.webhook_usage (
  app_id uuid NOT NULL REFERENCES portico.application,
  day date NOT NULL,
  attempts bigint NOT NULL,
  PRIMARY KEY (app_id, day)
) WITH (fillfactor = 50);
ALTER TABLE portico.webhook_usage ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY account ON portico.webhook_usage TO portico_app USING (app_id IN (SELECT a.app_id FROM portico.application a
  WHERE a.account_id = (SELECT portico.current_account())));
CREATE POLICY system ON portico.webhook_usage TO portico_system USING (true);
GRANT SELECT ON portico.webhook_usage TO portico_app;
GRANT SELECT, INSERT, UPDATE ON portico.webhook_usage TO portico_system;
