-- Applications, customer organisations, the people in them, and the credentials that act for them.
--
-- Two walls around a tenant (data.md): every statement names organization_id, and row-level security refuses what forgets
-- to. Row-level security reads the organisation from the transaction-local setting portico.organization_id, which only
-- shared/database sets. FORCE makes it hold for the owner too; the owner gets an explicit policy on the few tables that
-- must be read before an organisation is known (verifying a credential), and on no tenant data.

CREATE FUNCTION portico.current_organization() RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
RETURN nullif(current_setting('portico.organization_id', true), '')::uuid;

-- Counters that move in the transaction of any change to what a caller may do: one for each organisation (credentials,
-- users, roles, status) and one for each application (objects, fields, permissions). Every transaction reads the two it
-- depends on in its first statement, so a revocation holds on the very next request of every process.
CREATE TABLE portico.epoch (
  scope_id uuid PRIMARY KEY,
  value bigint NOT NULL DEFAULT 1
) WITH (fillfactor = 50);

CREATE FUNCTION portico.bump_epoch(scope uuid) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = ''
BEGIN ATOMIC
  INSERT INTO portico.epoch (scope_id) VALUES (scope)
  ON CONFLICT (scope_id) DO UPDATE SET value = portico.epoch.value + 1;
END;

CREATE TABLE portico.application (
  app_id uuid PRIMARY KEY,
  app_key text NOT NULL UNIQUE CHECK (app_key ~ '^[a-z][a-z0-9-]{0,49}$'),
  name text NOT NULL,
  -- Holds one table for each object of the application.
  schema_name text NOT NULL UNIQUE CHECK (schema_name ~ '^app_[0-9a-f]{12}$'),
  created_at timestamptz(3) NOT NULL DEFAULT now()
);

CREATE TABLE portico.organization (
  organization_id uuid PRIMARY KEY,
  app_id uuid NOT NULL REFERENCES portico.application,
  name text NOT NULL,
  slug text NOT NULL UNIQUE CHECK (slug ~ '^[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$'),
  status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'inactive')),
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  UNIQUE (organization_id, app_id)
);

-- DataRoles are provisioned into each organisation from the templates of its application; what a role may do is said once,
-- on the template.
CREATE TABLE portico.data_role_template (
  app_id uuid NOT NULL REFERENCES portico.application,
  template_key text NOT NULL CHECK (template_key ~ '^[a-z][a-z0-9_-]{0,49}$'),
  label text NOT NULL,
  PRIMARY KEY (app_id, template_key)
);

CREATE TABLE portico.data_role (
  organization_id uuid NOT NULL REFERENCES portico.organization,
  data_role_id uuid NOT NULL,
  app_id uuid NOT NULL,
  template_key text NOT NULL,
  PRIMARY KEY (organization_id, data_role_id),
  UNIQUE (organization_id, template_key),
  FOREIGN KEY (app_id, template_key) REFERENCES portico.data_role_template
);

CREATE TABLE portico.location (
  organization_id uuid NOT NULL REFERENCES portico.organization,
  location_id uuid NOT NULL,
  location_key text NOT NULL,
  name text NOT NULL,
  PRIMARY KEY (organization_id, location_id),
  UNIQUE (organization_id, location_key)
);

-- An identity inside one organisation.
CREATE TABLE portico.tenant_user (
  organization_id uuid NOT NULL REFERENCES portico.organization,
  user_id uuid NOT NULL,
  email text NOT NULL,
  display_name text NOT NULL,
  status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'inactive')),
  password_hash text,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (organization_id, user_id)
);
CREATE UNIQUE INDEX tenant_user_email ON portico.tenant_user (organization_id, lower(email));

-- What the user is in the organisation.
CREATE TABLE portico.membership (
  organization_id uuid NOT NULL,
  user_id uuid NOT NULL,
  user_type_key text NOT NULL,
  is_owner boolean NOT NULL DEFAULT false,
  all_locations boolean NOT NULL DEFAULT false,
  PRIMARY KEY (organization_id, user_id),
  FOREIGN KEY (organization_id, user_id) REFERENCES portico.tenant_user
);

CREATE TABLE portico.membership_data_role (
  organization_id uuid NOT NULL,
  user_id uuid NOT NULL,
  data_role_id uuid NOT NULL,
  PRIMARY KEY (organization_id, user_id, data_role_id),
  FOREIGN KEY (organization_id, user_id) REFERENCES portico.membership,
  FOREIGN KEY (organization_id, data_role_id) REFERENCES portico.data_role
);

CREATE TABLE portico.membership_location (
  organization_id uuid NOT NULL,
  user_id uuid NOT NULL,
  location_id uuid NOT NULL,
  PRIMARY KEY (organization_id, user_id, location_id),
  FOREIGN KEY (organization_id, user_id) REFERENCES portico.membership,
  FOREIGN KEY (organization_id, location_id) REFERENCES portico.location
);

-- Tokens of the kinds live, draft, dat and drt. Only an HMAC of the secret is kept. A live or draft credential may carry an
-- envelope of DataRoles and locations; a dat credential takes both from the membership of its user, and
-- a drt credential only renews dat credentials.
CREATE TABLE portico.credential (
  key_id text PRIMARY KEY CHECK (key_id ~ '^[0-9A-Za-z]{12}$'),
  organization_id uuid NOT NULL,
  app_id uuid NOT NULL,
  kind text NOT NULL CHECK (kind IN ('live', 'draft', 'dat', 'drt')),
  user_id uuid,
  display_name text NOT NULL DEFAULT '',
  secret_hash bytea NOT NULL,
  -- While a rotation overlaps, both secrets hold until previous_expires_at.
  previous_secret_hash bytea,
  previous_expires_at timestamptz(3),
  scopes text[] NOT NULL,
  has_envelope boolean NOT NULL DEFAULT false,
  envelope_data_role_ids uuid[] NOT NULL DEFAULT '{}',
  envelope_all_locations boolean NOT NULL DEFAULT false,
  envelope_location_ids uuid[] NOT NULL DEFAULT '{}',
  expires_at timestamptz(3),
  revoked_at timestamptz(3),
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  FOREIGN KEY (organization_id, app_id) REFERENCES portico.organization (organization_id, app_id),
  FOREIGN KEY (organization_id, user_id) REFERENCES portico.tenant_user,
  CHECK ((kind IN ('dat', 'drt')) = (user_id IS NOT NULL))
);
CREATE INDEX credential_organization ON portico.credential (organization_id);

-- The people who make applications, and their sessions (token kind bld). They belong to no organisation.
CREATE TABLE portico.builder_account (
  account_id uuid PRIMARY KEY,
  email text NOT NULL,
  password_hash text NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX builder_account_email ON portico.builder_account (lower(email));

CREATE TABLE portico.builder_session (
  key_id text PRIMARY KEY CHECK (key_id ~ '^[0-9A-Za-z]{12}$'),
  account_id uuid NOT NULL REFERENCES portico.builder_account,
  secret_hash bytea NOT NULL,
  expires_at timestamptz(3) NOT NULL,
  revoked_at timestamptz(3),
  created_at timestamptz(3) NOT NULL DEFAULT now()
);

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['organization', 'data_role', 'location', 'tenant_user', 'membership',
    'membership_data_role', 'membership_location', 'credential']
  LOOP
    EXECUTE format('ALTER TABLE portico.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant ON portico.%I USING (organization_id = (SELECT portico.current_organization()))', name);
    EXECUTE format('CREATE POLICY identity_lookup ON portico.%I TO portico_owner USING (true)', name);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON portico.%I TO portico_app', name);
  END LOOP;
END $$;

GRANT SELECT ON portico.epoch, portico.application, portico.data_role_template TO portico_app;

-- Everything that a credential stands for, in one row. Runs before an organisation is known, so as the owner; it answers
-- to a key id alone, and the caller still has to prove the secret against secret_hash.
CREATE FUNCTION portico.find_credential(wanted text)
RETURNS TABLE (
  key_id text, kind text, app_id uuid, organization_id uuid, organization_name text, organization_slug text,
  organization_status text, secret_hash bytea, previous_secret_hash bytea, previous_expires_at timestamptz,
  scopes text[], has_envelope boolean, expires_at timestamptz, revoked_at timestamptz,
  user_id uuid, display_name text, email text, user_status text, user_type_key text, is_owner boolean,
  data_roles json, all_locations boolean, location_ids uuid[], organization_epoch bigint, application_epoch bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = ''
BEGIN ATOMIC
  SELECT c.key_id, c.kind, c.app_id, c.organization_id, o.name, o.slug, o.status, c.secret_hash,
    c.previous_secret_hash, c.previous_expires_at, c.scopes, c.has_envelope, c.expires_at, c.revoked_at,
    u.user_id, u.display_name, u.email, u.status, m.user_type_key, m.is_owner,
    (SELECT coalesce(json_agg(json_build_object('dataRoleId', r.data_role_id, 'key', r.template_key) ORDER BY r.template_key), '[]')
       FROM portico.data_role r
      WHERE r.organization_id = c.organization_id
        AND CASE WHEN c.user_id IS NULL THEN r.data_role_id = ANY (c.envelope_data_role_ids)
            ELSE EXISTS (SELECT FROM portico.membership_data_role mr
                          WHERE mr.organization_id = c.organization_id AND mr.user_id = c.user_id
                            AND mr.data_role_id = r.data_role_id) END),
    CASE WHEN c.user_id IS NULL THEN c.envelope_all_locations ELSE coalesce(m.all_locations, false) END,
    CASE WHEN c.user_id IS NULL THEN c.envelope_location_ids
      ELSE ARRAY(SELECT ml.location_id FROM portico.membership_location ml
                  WHERE ml.organization_id = c.organization_id AND ml.user_id = c.user_id ORDER BY 1) END,
    (SELECT e.value FROM portico.epoch e WHERE e.scope_id = c.organization_id),
    (SELECT e.value FROM portico.epoch e WHERE e.scope_id = c.app_id)
  FROM portico.credential c
  JOIN portico.organization o ON o.organization_id = c.organization_id
  LEFT JOIN portico.tenant_user u ON u.organization_id = c.organization_id AND u.user_id = c.user_id
  LEFT JOIN portico.membership m ON m.organization_id = c.organization_id AND m.user_id = c.user_id
  WHERE c.key_id = wanted;
END;

-- The session of a builder, by key id; the caller has to prove the secret here too.
CREATE FUNCTION portico.find_builder_session(wanted text)
RETURNS TABLE (key_id text, account_id uuid, secret_hash bytea, expires_at timestamptz, revoked_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = ''
BEGIN ATOMIC
  SELECT s.key_id, s.account_id, s.secret_hash, s.expires_at, s.revoked_at
  FROM portico.builder_session s WHERE s.key_id = wanted;
END;

REVOKE ALL ON FUNCTION portico.find_credential(text), portico.find_builder_session(text), portico.bump_epoch(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.find_credential(text), portico.find_builder_session(text), portico.bump_epoch(uuid)
  TO portico_app;
