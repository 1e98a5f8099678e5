-- The outbox and what leaves through it (specification 6). A change writes its event into portico.outbox, in its own
-- transaction. One process at a time takes what was committed, in the order of its commits, gives each event its position,
-- moves it to portico.event and writes a delivery for each subscription that it is for, all in one transaction.
--
-- Both queues hold only what is still to be done, and what is over is moved to tables of history: finding work costs the same
-- with a day of history as with a million deliveries of it.

ALTER TABLE portico.domain_event RENAME TO outbox;
ALTER TABLE portico.outbox
  ALTER COLUMN data TYPE json,
  -- The order in which rows were written. Of two changes to one record the second waits for the first to commit, so this is
  -- the order of that record's history too.
  ADD COLUMN written bigint GENERATED ALWAYS AS IDENTITY,
  -- Of events about records: what decides who may know of them.
  ADD COLUMN object_id uuid,
  ADD COLUMN owner_user_id uuid,
  ADD COLUMN data_role_id uuid,
  ADD COLUMN location_id uuid,
  ADD COLUMN changed_fields text[],
  -- Of a test: the only subscription that it is for.
  ADD COLUMN subscription_id uuid,
  DROP CONSTRAINT domain_event_pkey,
  DROP CONSTRAINT domain_event_organization_id_transaction_id_event_key_subje_key,
  -- Several facts of one kind about one subject in one transaction collapse to the last.
  ADD PRIMARY KEY (organization_id, transaction_id, event_key, subject_id);
CREATE INDEX outbox_written ON portico.outbox (written);

CREATE SEQUENCE portico.event_position;

-- Partitions of tables whose ids are UUIDs of version 7, and so lead to the time they were made at (RFC 9562 5.7).
CREATE FUNCTION portico.uuid_at(at timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid;

CREATE TABLE portico.event (
  organization_id uuid NOT NULL,
  event_id uuid NOT NULL,
  -- In the order of commits, without anything that could still come in between.
  position bigint NOT NULL,
  app_id uuid NOT NULL,
  event_key text NOT NULL,
  event_version text NOT NULL,
  occurred_at timestamptz(3) NOT NULL,
  subject_type text NOT NULL,
  subject_id uuid NOT NULL,
  actor_kind text NOT NULL,
  actor_id text NOT NULL,
  data json NOT NULL,
  object_id uuid,
  owner_user_id uuid,
  data_role_id uuid,
  location_id uuid,
  changed_fields text[],
  subscription_id uuid,
  PRIMARY KEY (organization_id, event_id)
) PARTITION BY RANGE (event_id);
CREATE INDEX event_feed ON portico.event (organization_id, position);

CREATE TABLE portico.webhook_subscription (
  organization_id uuid NOT NULL REFERENCES portico.organization,
  subscription_id uuid NOT NULL,
  app_id uuid NOT NULL,
  display_name text NOT NULL,
  destination_url text NOT NULL,
  scope text NOT NULL CHECK (scope IN ('account', 'app')),
  -- [{"eventKey", "eventVersion"}] as it was asked for.
  events jsonb NOT NULL,
  enabled boolean NOT NULL DEFAULT true,
  disabled_reason text,
  disabled_at timestamptz(3),
  -- What this credential may not read, no delivery carries.
  key_id text NOT NULL,
  secret_sealed bytea NOT NULL,
  secret_hint text NOT NULL,
  secret_rotated_at timestamptz(3),
  previous_secret_sealed bytea,
  previous_secret_expires_at timestamptz(3),
  revision bigint NOT NULL DEFAULT 1,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (organization_id, subscription_id),
  CHECK (enabled = (disabled_at IS NULL))
);
CREATE INDEX webhook_subscription_app ON portico.webhook_subscription (app_id) WHERE scope = 'app';

-- Beside the subscription, because it changes with deliveries and that one with people.
CREATE TABLE portico.webhook_health (
  organization_id uuid NOT NULL,
  subscription_id uuid NOT NULL,
  consecutive_failures integer NOT NULL DEFAULT 0,
  first_failure_at timestamptz(3),
  last_success_at timestamptz(3),
  PRIMARY KEY (organization_id, subscription_id),
  FOREIGN KEY (organization_id, subscription_id) REFERENCES portico.webhook_subscription ON DELETE CASCADE
) WITH (fillfactor = 50);

-- Deliveries that are not over. The columns up to max_attempts are those of portico.webhook_delivery.
CREATE TABLE portico.webhook_queue (
  -- Whose subscription it is; the event of one with the scope app may be another organisation's.
  organization_id uuid NOT NULL,
  delivery_id uuid NOT NULL,
  subscription_id uuid NOT NULL,
  app_id uuid NOT NULL,
  event_organization_id uuid NOT NULL,
  event_id uuid NOT NULL,
  event_key text NOT NULL,
  event_version text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  -- As the contract has them, the last 20.
  attempts jsonb NOT NULL DEFAULT '[]',
  attempt_count integer NOT NULL DEFAULT 0,
  max_attempts integer NOT NULL,
  -- What the next attempt will be due to: 'schedule', or 'manual', 'recover', 'test' for whoever asked for it.
  trigger text NOT NULL DEFAULT 'schedule',
  due_at timestamptz(3) NOT NULL,
  -- A worker has it until then; it writes what became of it only while the number is still that of its lease.
  leased_until timestamptz(3),
  lease_number integer NOT NULL DEFAULT 0,
  started_at timestamptz(3),
  PRIMARY KEY (organization_id, delivery_id)
) WITH (fillfactor = 70);
CREATE INDEX webhook_queue_due ON portico.webhook_queue (subscription_id, due_at, delivery_id) WHERE leased_until IS NULL;
CREATE INDEX webhook_queue_leased ON portico.webhook_queue (subscription_id, leased_until) WHERE leased_until IS NOT NULL;

-- Those that are over, for 30 days.
CREATE TABLE portico.webhook_delivery (
  organization_id uuid NOT NULL,
  delivery_id uuid NOT NULL,
  subscription_id uuid NOT NULL,
  app_id uuid NOT NULL,
  event_organization_id uuid NOT NULL,
  event_id uuid NOT NULL,
  event_key text NOT NULL,
  event_version text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  attempts jsonb NOT NULL,
  attempt_count integer NOT NULL,
  max_attempts integer NOT NULL,
  state text NOT NULL CHECK (state IN ('delivered', 'failed')),
  category text NOT NULL,
  completed_at timestamptz(3) NOT NULL,
  PRIMARY KEY (organization_id, delivery_id)
) PARTITION BY RANGE (delivery_id);
CREATE INDEX webhook_delivery_subscription ON portico.webhook_delivery (organization_id, subscription_id, delivery_id);
CREATE INDEX webhook_delivery_event ON portico.webhook_delivery (organization_id, event_id);
CREATE INDEX webhook_delivery_failed ON portico.webhook_delivery (organization_id, delivery_id) WHERE state = 'failed';

-- A partition for each week: makes those of this week and the coming two, and drops those that ended before `kept_since`.
-- What falls outside of all of them (a clock that is wrong) is in the default one.
CREATE FUNCTION portico.keep_partitions(parent text, now_at timestamptz, kept_since timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = ''
AS $$
DECLARE
  week timestamptz;
  name text;
  ends text;
BEGIN
  FOR week IN SELECT pg_catalog.generate_series(pg_catalog.date_trunc('week', now_at, 'UTC'),
    pg_catalog.date_trunc('week', now_at, 'UTC') + interval '14 days', interval '7 days')
  LOOP
    name := parent || pg_catalog.to_char(week AT TIME ZONE 'UTC', '"_"YYYYMMDD');
    CONTINUE WHEN pg_catalog.to_regclass('portico.' || name) IS NOT NULL;
    EXECUTE pg_catalog.format('CREATE TABLE portico.%I PARTITION OF portico.%I FOR VALUES FROM (%L) TO (%L)',
      name, parent, portico.uuid_at(week), portico.uuid_at(week + interval '7 days'));
  END LOOP;
  FOR name IN
    SELECT c.relname FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = ('portico.' || parent)::pg_catalog.regclass AND c.relname ~ ('^' || parent || '_[0-9]{8}$')
  LOOP
    ends := pg_catalog.right(name, 8);
    IF pg_catalog.to_date(ends, 'YYYYMMDD') + 7 <= (kept_since AT TIME ZONE 'UTC')::date THEN
      EXECUTE pg_catalog.format('DROP TABLE portico.%I', name);
    END IF;
  END LOOP;
END $$;
REVOKE ALL ON FUNCTION portico.keep_partitions(text, timestamptz, timestamptz) FROM PUBLIC;

CREATE TABLE portico.event_other PARTITION OF portico.event DEFAULT;
CREATE TABLE portico.webhook_delivery_other PARTITION OF portico.webhook_delivery DEFAULT;
SELECT portico.keep_partitions(parent, now(), now() - interval '30 days') FROM (VALUES ('event'), ('webhook_delivery')) AS p (parent);

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['event', 'webhook_subscription', 'webhook_health', 'webhook_queue', 'webhook_delivery']
  LOOP
    EXECUTE format('ALTER TABLE portico.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant ON portico.%I TO portico_app USING (organization_id = (SELECT portico.current_organization()))', name);
    EXECUTE format('CREATE POLICY system ON portico.%I TO portico_system USING (true)', name);
  END LOOP;
END $$;
CREATE POLICY system ON portico.outbox TO portico_system USING (true);

REVOKE UPDATE ON portico.outbox FROM portico_app;
GRANT UPDATE (occurred_at, data, owner_user_id, data_role_id, location_id, changed_fields) ON portico.outbox TO portico_app;
GRANT SELECT, DELETE ON portico.outbox TO portico_system;
GRANT SELECT ON portico.event TO portico_app;
GRANT SELECT, INSERT, DELETE ON portico.event TO portico_system;
GRANT USAGE ON SEQUENCE portico.event_position TO portico_system;
GRANT SELECT, INSERT, UPDATE, DELETE ON portico.webhook_subscription, portico.webhook_queue TO portico_app;
GRANT SELECT ON portico.webhook_health TO portico_app;
GRANT SELECT, DELETE, INSERT ON portico.webhook_delivery TO portico_app;
GRANT SELECT, UPDATE ON portico.webhook_subscription TO portico_system;
GRANT SELECT, INSERT, UPDATE, DELETE ON portico.webhook_health, portico.webhook_queue TO portico_system;
GRANT SELECT, INSERT, DELETE ON portico.webhook_delivery TO portico_system;
-- The two epochs that a remembered caller has to be held against.
GRANT SELECT ON portico.epoch TO portico_system;
GRANT EXECUTE ON FUNCTION portico.find_credential(text) TO portico_system;
