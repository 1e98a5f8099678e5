-- What is kept of requests: answers by idempotency key for 24 hours, outcomes by correlation id for 7 days. Both are
-- partitioned by day and dropped by partition.

CREATE TABLE portico.idempotency_key (
  organization_id uuid NOT NULL,
  -- The user or the credential that sent the key: keys of different clients never meet.
  principal text NOT NULL,
  key text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  request_hash bytea NOT NULL,
  status smallint NOT NULL,
  headers jsonb NOT NULL,
  payload text NOT NULL,
  PRIMARY KEY (organization_id, principal, key, created_at)
) PARTITION BY RANGE (created_at);

CREATE TABLE portico.request_log (
  organization_id uuid NOT NULL,
  correlation_id uuid NOT NULL,
  occurred_at timestamptz(3) NOT NULL,
  operation_id text NOT NULL,
  method text NOT NULL,
  route text NOT NULL,
  status smallint NOT NULL,
  code text,
  duration_ms real NOT NULL,
  credential_kind text NOT NULL,
  stages jsonb NOT NULL,
  entries jsonb NOT NULL,
  PRIMARY KEY (organization_id, correlation_id, occurred_at)
) PARTITION BY RANGE (occurred_at);

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['idempotency_key', 'request_log']
  LOOP
    EXECUTE format('ALTER TABLE portico.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant ON portico.%I USING (organization_id = (SELECT portico.current_organization()))', name);
    EXECUTE format('GRANT SELECT, INSERT ON portico.%I TO portico_app', name);
  END LOOP;
END $$;

-- The log is written in batches across organisations, by the service itself.
CREATE POLICY recorder ON portico.request_log FOR INSERT TO portico_system WITH CHECK (true);
GRANT INSERT ON portico.request_log TO portico_system;

-- Makes the partitions of the days (or months) ahead and drops those past their keep. Runs at every start and hourly.
CREATE FUNCTION portico.maintain_partitions(today date) RETURNS void
LANGUAGE plpgsql SET search_path = ''
AS $$
DECLARE
  plan record;
  starts date;
  child record;
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
END $$;
REVOKE ALL ON FUNCTION portico.maintain_partitions(date) FROM PUBLIC;
SELECT portico.maintain_partitions(current_date);
