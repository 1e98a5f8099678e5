-- Credentials that builders issue, what their applications use, and what their accounts are entitled to.

ALTER TABLE portico.credential
  -- The builder; null where the service made it itself.
  ADD COLUMN created_by uuid,
  ADD COLUMN rotated_at timestamptz(3);
-- Tokens and sessions of users outnumber what builders issue by far.
CREATE INDEX credential_issued ON portico.credential (organization_id, created_at, key_id) WHERE kind IN ('live', 'draft');

-- The audit log is read newest first: entry ids are UUIDv7, so they sort by time.
CREATE INDEX audit_entry_action ON portico.audit_entry (account_id, action, entry_id);
CREATE INDEX audit_entry_application ON portico.audit_entry (account_id, app_id, entry_id);
CREATE INDEX audit_entry_organization ON portico.audit_entry (account_id, target_organization_id, entry_id);

-- What an application had on a day, in UTC, when it was measured last on that day (shared/usage). What could not be
-- measured has no row.
CREATE TABLE portico.usage_daily (
  account_id uuid NOT NULL REFERENCES portico.account,
  app_id uuid NOT NULL REFERENCES portico.application,
  day date NOT NULL,
  resource text NOT NULL,
  quantity bigint NOT NULL CHECK (quantity >= 0),
  measured_at timestamptz(3) NOT NULL,
  PRIMARY KEY (account_id, app_id, day, resource)
);

-- Listings of the marketplace that an account may install. Granted by who runs the service, never by the account itself.
CREATE TABLE portico.entitlement (
  account_id uuid NOT NULL REFERENCES portico.account,
  entitlement_id uuid NOT NULL,
  listing_key text NOT NULL CHECK (listing_key ~ '^[a-z][a-z0-9-]{0,49}$'),
  listing_name text NOT NULL,
  granted_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3),
  PRIMARY KEY (account_id, entitlement_id),
  UNIQUE (account_id, listing_key)
);

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['usage_daily', 'entitlement']
  LOOP
    EXECUTE format('ALTER TABLE portico.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY account ON portico.%I TO portico_app USING (account_id = (SELECT portico.current_account()))', name);
    EXECUTE format('CREATE POLICY owner ON portico.%I TO portico_owner USING (true)', name);
  END LOOP;
END $$;
GRANT SELECT, INSERT, UPDATE ON portico.usage_daily TO portico_app;
GRANT SELECT ON portico.entitlement TO portico_app;

-- How many records an application of the bound account has, archived ones included, in all of its organisations; null where
-- the application is not the account's. Nobody may read the records of all organisations at once, and this does not either:
-- it is bound to one after the other, and row-level security holds throughout. It runs with the rights of who calls it.
CREATE FUNCTION portico.count_records(application uuid) RETURNS bigint
LANGUAGE plpgsql SET search_path = ''
AS $$
DECLARE
  bound_before text := pg_catalog.current_setting('portico.organization_id', true);
  -- All of them first: what is bound decides what of this table can be seen.
  organizations uuid[] := ARRAY(SELECT o.organization_id FROM portico.organization o WHERE o.app_id = application);
  organization uuid;
  part bigint;
  total bigint := 0;
BEGIN
  IF NOT EXISTS (SELECT FROM portico.application a
      WHERE a.app_id = application AND a.account_id = portico.current_account()) THEN
    RETURN NULL;
  END IF;
  FOREACH organization IN ARRAY organizations LOOP
    PERFORM pg_catalog.set_config('portico.organization_id', organization::text, true);
    SELECT count(*) INTO part FROM portico.record_directory d WHERE d.organization_id = organization;
    total := total + part;
  END LOOP;
  PERFORM pg_catalog.set_config('portico.organization_id', coalesce(bound_before, ''), true);
  RETURN total;
END $$;
REVOKE ALL ON FUNCTION portico.count_records(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.count_records(uuid) TO portico_app;
