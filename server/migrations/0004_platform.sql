-- The builders' side: accounts and the people in them, drafts and releases of models, what they sold and used, and a record
-- of everything that was changed. Rows belong to an account as tenant data belongs to an organisation, behind the same two
-- walls: every statement names the account, and row-level security compares it with the transaction-local setting
-- portico.account_id.

-- What the service knows of itself, for instance which master key it was made with.
CREATE TABLE portico.installation (
  name text PRIMARY KEY,
  value bytea NOT NULL
);

CREATE FUNCTION portico.current_account() RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
RETURN nullif(current_setting('portico.account_id', true), '')::uuid;

-- Until now a builder was an account. From here on an account has members.
ALTER TABLE portico.builder_account RENAME TO builder;
ALTER TABLE portico.builder RENAME COLUMN account_id TO builder_id;
ALTER INDEX portico.builder_account_email RENAME TO builder_email;
ALTER TABLE portico.builder
  ADD COLUMN display_name text NOT NULL DEFAULT '',
  -- Sealed (shared/secrets); null until enrolled, confirmed when the first code was right.
  ADD COLUMN totp_secret bytea,
  ADD COLUMN totp_confirmed_at timestamptz(3),
  -- The last time step whose code was used: a code works once (RFC 6238 5.2).
  ADD COLUMN totp_last_step bigint;

CREATE TABLE portico.account (
  account_id uuid PRIMARY KEY,
  name text NOT NULL,
  billing_email text,
  plan_key text NOT NULL DEFAULT 'free',
  revision bigint NOT NULL DEFAULT 1,
  created_at timestamptz(3) NOT NULL DEFAULT now()
);

CREATE TABLE portico.account_member (
  account_id uuid NOT NULL REFERENCES portico.account,
  builder_id uuid NOT NULL REFERENCES portico.builder,
  role text NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'billing')),
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, builder_id)
);
CREATE INDEX account_member_builder ON portico.account_member (builder_id);

INSERT INTO portico.account (account_id, name, billing_email) SELECT builder_id, email, email FROM portico.builder;
INSERT INTO portico.account_member (account_id, builder_id, role) SELECT builder_id, builder_id, 'owner' FROM portico.builder;
INSERT INTO portico.epoch (scope_id) SELECT account_id FROM portico.account;

CREATE TABLE portico.account_invitation (
  account_id uuid NOT NULL REFERENCES portico.account,
  invitation_id uuid NOT NULL,
  email text NOT NULL,
  role text NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'billing')),
  token_hash bytea NOT NULL UNIQUE,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  expires_at timestamptz(3) NOT NULL,
  accepted_at timestamptz(3),
  revoked_at timestamptz(3),
  PRIMARY KEY (account_id, invitation_id)
);

ALTER TABLE portico.builder_session RENAME COLUMN account_id TO builder_id;
ALTER TABLE portico.builder_session
  ADD COLUMN account_id uuid REFERENCES portico.account,
  ADD COLUMN last_used_at timestamptz(3),
  ADD COLUMN user_agent text NOT NULL DEFAULT '',
  ADD COLUMN address text NOT NULL DEFAULT '';
UPDATE portico.builder_session SET account_id = builder_id;
ALTER TABLE portico.builder_session ALTER COLUMN account_id SET NOT NULL;
CREATE INDEX builder_session_account ON portico.builder_session (account_id, builder_id);

ALTER TABLE portico.application
  ADD COLUMN account_id uuid REFERENCES portico.account,
  ADD COLUMN description text NOT NULL DEFAULT '',
  ADD COLUMN revision bigint NOT NULL DEFAULT 1,
  ADD COLUMN archived_at timestamptz(3);
UPDATE portico.application SET account_id = (SELECT account_id FROM portico.account ORDER BY created_at LIMIT 1);
ALTER TABLE portico.application ALTER COLUMN account_id SET NOT NULL;
CREATE INDEX application_account ON portico.application (account_id);

ALTER TABLE portico.organization
  ADD COLUMN billing_email text,
  ADD COLUMN custom_domain text UNIQUE,
  ADD COLUMN revision bigint NOT NULL DEFAULT 1;

ALTER TABLE portico.tenant_user ADD COLUMN revision bigint NOT NULL DEFAULT 1;

CREATE TABLE portico.location_template (
  app_id uuid NOT NULL REFERENCES portico.application,
  template_key text NOT NULL CHECK (template_key ~ '^[a-z][a-z0-9_-]{0,49}$'),
  label text NOT NULL,
  PRIMARY KEY (app_id, template_key)
);

-- The model that is being edited, and those that were published, as documents (shared/modelling/document.ts).
CREATE TABLE portico.model_draft (
  app_id uuid PRIMARY KEY REFERENCES portico.application,
  document jsonb NOT NULL,
  revision bigint NOT NULL DEFAULT 1,
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  updated_by uuid NOT NULL
);

CREATE TABLE portico.model_release (
  app_id uuid NOT NULL REFERENCES portico.application,
  release_number integer NOT NULL,
  document jsonb NOT NULL,
  changes jsonb NOT NULL,
  note text NOT NULL DEFAULT '',
  rolled_back_to integer,
  published_at timestamptz(3) NOT NULL DEFAULT now(),
  published_by uuid NOT NULL,
  PRIMARY KEY (app_id, release_number)
);

-- Facts for others (specification 6): written in the transaction of the change, delivered later. Several facts of one
-- transaction about one subject collapse to the last.
CREATE TABLE portico.domain_event (
  organization_id uuid NOT NULL,
  event_id uuid NOT NULL,
  app_id uuid NOT NULL,
  event_key text NOT NULL,
  event_version text NOT NULL,
  occurred_at timestamptz(3) NOT NULL,
  subject_type text NOT NULL,
  subject_id uuid NOT NULL,
  actor_kind text NOT NULL,
  actor_id text NOT NULL,
  data jsonb NOT NULL,
  transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
  PRIMARY KEY (organization_id, event_id),
  UNIQUE (organization_id, transaction_id, event_key, subject_id)
);

CREATE TABLE portico.invitation (
  organization_id uuid NOT NULL REFERENCES portico.organization,
  invitation_id uuid NOT NULL,
  email text NOT NULL,
  display_name text NOT NULL,
  user_type_key text NOT NULL,
  is_owner boolean NOT NULL DEFAULT false,
  all_locations boolean NOT NULL DEFAULT false,
  location_ids uuid[] NOT NULL DEFAULT '{}',
  data_role_ids uuid[] NOT NULL DEFAULT '{}',
  token_hash bytea NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  sent_at timestamptz(3),
  expires_at timestamptz(3) NOT NULL,
  accepted_at timestamptz(3),
  accepted_user_id uuid,
  revoked_at timestamptz(3),
  PRIMARY KEY (organization_id, invitation_id)
);
CREATE UNIQUE INDEX invitation_token ON portico.invitation (organization_id, token_hash);

-- Who changed what on the builders' side and in tenancy, before and after. Nobody but the owner can change or delete a row.
CREATE TABLE portico.audit_entry (
  account_id uuid NOT NULL,
  entry_id uuid NOT NULL,
  occurred_at timestamptz(3) NOT NULL DEFAULT now(),
  actor_kind text NOT NULL,
  actor_id text NOT NULL,
  action text NOT NULL,
  target_type text NOT NULL,
  target_id text NOT NULL,
  app_id uuid,
  -- Where it happened; the row itself belongs to the account.
  target_organization_id uuid,
  before jsonb,
  after jsonb,
  correlation_id uuid NOT NULL,
  PRIMARY KEY (account_id, entry_id)
);
CREATE INDEX audit_entry_target ON portico.audit_entry (account_id, target_type, target_id, entry_id);
CREATE INDEX audit_entry_actor ON portico.audit_entry (account_id, actor_id, entry_id);

-- Where a row belongs to an account.
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['account', 'account_member', 'account_invitation', 'application', 'builder_session', 'audit_entry']
  LOOP
    EXECUTE format('ALTER TABLE portico.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY account ON portico.%I TO portico_app USING (account_id = (SELECT portico.current_account()))', name);
    EXECUTE format('CREATE POLICY owner ON portico.%I TO portico_owner USING (true)', name);
  END LOOP;
END $$;

-- An application is visible to its account, and to those who work in one of its organisations. A function, because the
-- policies of application and organization would otherwise ask each other for ever.
CREATE FUNCTION portico.bound_application() RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = ''
BEGIN ATOMIC
  SELECT o.app_id FROM portico.organization o WHERE o.organization_id = portico.current_organization();
END;
REVOKE ALL ON FUNCTION portico.bound_application() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.bound_application() TO portico_app;

CREATE POLICY bound ON portico.application FOR SELECT TO portico_app
  USING (app_id = (SELECT portico.bound_application()));

-- What describes an application is visible with it.
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['data_role_template', 'location_template', 'object_definition', 'field_definition',
    'object_permission', 'field_permission']
  LOOP
    EXECUTE format('ALTER TABLE portico.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY application ON portico.%I TO portico_app USING (app_id IN (SELECT a.app_id FROM portico.application a))', name);
    EXECUTE format('CREATE POLICY owner ON portico.%I TO portico_owner USING (true)', name);
  END LOOP;
END $$;

-- Drafts and releases are the builder's alone: who works in an organisation of the application sees what was published.
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['model_draft', 'model_release']
  LOOP
    EXECUTE format('ALTER TABLE portico.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY account ON portico.%I TO portico_app USING (app_id IN (SELECT a.app_id FROM portico.application a
      WHERE a.account_id = (SELECT portico.current_account())))', name);
    EXECUTE format('CREATE POLICY owner ON portico.%I TO portico_owner USING (true)', name);
  END LOOP;
END $$;

-- A builder sees the organisations of the account's applications; to work inside one, it is bound to it first.
CREATE POLICY account ON portico.organization TO portico_app
  USING (app_id IN (SELECT a.app_id FROM portico.application a WHERE a.account_id = (SELECT portico.current_account())));

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['domain_event', 'invitation']
  LOOP
    EXECUTE format('ALTER TABLE portico.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant ON portico.%I USING (organization_id = (SELECT portico.current_organization()))', name);
  END LOOP;
END $$;

GRANT SELECT, INSERT, UPDATE ON portico.account, portico.application, portico.builder_session, portico.invitation TO portico_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON portico.account_member, portico.account_invitation, portico.model_draft TO portico_app;
GRANT SELECT, INSERT ON portico.model_release, portico.audit_entry TO portico_app;
GRANT SELECT, INSERT, UPDATE ON portico.domain_event TO portico_app;
GRANT SELECT ON portico.location_template TO portico_app;

-- Answers of idempotent requests belong to an organisation or to an account; ids of the two never meet.
ALTER TABLE portico.idempotency_key RENAME COLUMN organization_id TO tenant_id;
DROP POLICY tenant ON portico.idempotency_key;
CREATE POLICY tenant ON portico.idempotency_key
  USING (tenant_id IN ((SELECT portico.current_organization()), (SELECT portico.current_account())));

DROP FUNCTION portico.find_builder_session(text);
CREATE FUNCTION portico.find_builder_session(wanted text)
RETURNS TABLE (key_id text, account_id uuid, builder_id uuid, email text, display_name text, role text, secret_hash bytea,
  expires_at timestamptz, revoked_at timestamptz, account_epoch bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = ''
BEGIN ATOMIC
  SELECT s.key_id, s.account_id, s.builder_id, b.email, b.display_name, m.role, s.secret_hash, s.expires_at, s.revoked_at,
    (SELECT e.value FROM portico.epoch e WHERE e.scope_id = s.account_id)
  FROM portico.builder_session s
  JOIN portico.builder b USING (builder_id)
  -- Who has left the account has no session in it.
  JOIN portico.account_member m ON m.account_id = s.account_id AND m.builder_id = s.builder_id
  WHERE s.key_id = wanted;
END;
REVOKE ALL ON FUNCTION portico.find_builder_session(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.find_builder_session(text) TO portico_app;
