-- What an application's objects are, and what all records have in common. The records themselves live in one table for
-- each object, in the schema of the application; shared/modelling makes and alters those tables from the definitions.

CREATE TABLE portico.object_definition (
  app_id uuid NOT NULL REFERENCES portico.application,
  object_id uuid NOT NULL,
  object_key text NOT NULL CHECK (object_key ~ '^[a-z][a-z0-9-]{0,49}$'),
  label text NOT NULL,
  plural_label text NOT NULL,
  kind text NOT NULL DEFAULT 'custom' CHECK (kind IN ('custom', 'native')),
  table_name text NOT NULL,
  name_field_key text NOT NULL,
  schema_revision integer NOT NULL DEFAULT 1,
  PRIMARY KEY (app_id, object_id),
  UNIQUE (app_id, object_key)
);

CREATE TABLE portico.field_definition (
  app_id uuid NOT NULL,
  object_id uuid NOT NULL,
  field_id uuid NOT NULL,
  field_key text NOT NULL CHECK (field_key ~ '^[a-z][A-Za-z0-9_]{0,49}$'),
  label text NOT NULL,
  data_type text NOT NULL,
  column_name text NOT NULL,
  position integer NOT NULL,
  required boolean NOT NULL DEFAULT false,
  is_unique boolean NOT NULL DEFAULT false,
  indexed boolean NOT NULL DEFAULT false,
  index_state text NOT NULL DEFAULT 'none' CHECK (index_state IN ('none', 'building', 'ready', 'failed')),
  searchable boolean NOT NULL DEFAULT false,
  -- Marks the field's part of a search document: one character of the private use area.
  search_tag text,
  options jsonb,
  validation jsonb NOT NULL DEFAULT '{}',
  reference_object_id uuid,
  PRIMARY KEY (app_id, object_id, field_id),
  UNIQUE (app_id, object_id, field_key),
  UNIQUE (app_id, object_id, column_name),
  FOREIGN KEY (app_id, object_id) REFERENCES portico.object_definition,
  FOREIGN KEY (app_id, reference_object_id) REFERENCES portico.object_definition
);

-- A role without a row for an object may do nothing with it.
CREATE TABLE portico.object_permission (
  app_id uuid NOT NULL,
  template_key text NOT NULL,
  object_id uuid NOT NULL,
  can_read boolean NOT NULL,
  can_create boolean NOT NULL,
  can_update boolean NOT NULL,
  can_archive boolean NOT NULL,
  PRIMARY KEY (app_id, template_key, object_id),
  FOREIGN KEY (app_id, template_key) REFERENCES portico.data_role_template,
  FOREIGN KEY (app_id, object_id) REFERENCES portico.object_definition
);

-- A role without a row for a field reads it with the object and writes it where it may create or update.
CREATE TABLE portico.field_permission (
  app_id uuid NOT NULL,
  template_key text NOT NULL,
  object_id uuid NOT NULL,
  field_id uuid NOT NULL,
  can_read boolean NOT NULL,
  can_write boolean NOT NULL,
  PRIMARY KEY (app_id, template_key, object_id, field_id),
  FOREIGN KEY (app_id, template_key, object_id) REFERENCES portico.object_permission,
  FOREIGN KEY (app_id, object_id, field_id) REFERENCES portico.field_definition
);

GRANT SELECT ON portico.object_definition, portico.field_definition, portico.object_permission, portico.field_permission
  TO portico_app;

-- Resolves a bare record id to its object.
CREATE TABLE portico.record_directory (
  organization_id uuid NOT NULL,
  record_id uuid NOT NULL,
  object_id uuid NOT NULL,
  PRIMARY KEY (organization_id, record_id)
);

CREATE TABLE portico.record_participant (
  organization_id uuid NOT NULL,
  record_id uuid NOT NULL,
  user_id uuid NOT NULL,
  PRIMARY KEY (organization_id, user_id, record_id),
  FOREIGN KEY (organization_id, record_id) REFERENCES portico.record_directory,
  FOREIGN KEY (organization_id, user_id) REFERENCES portico.tenant_user
);
CREATE INDEX record_participant_record ON portico.record_participant (organization_id, record_id);

-- One row for each change. A creation keeps no values: what it wrote is what the first change of each field replaced.
CREATE TABLE portico.record_history (
  organization_id uuid NOT NULL,
  record_id uuid NOT NULL,
  revision bigint NOT NULL,
  changed_at timestamptz(3) NOT NULL,
  operation text NOT NULL CHECK (operation IN ('created', 'updated', 'archived', 'restored')),
  actor_kind text NOT NULL,
  actor_id text NOT NULL,
  -- {fieldKey: [before, after]}
  changes jsonb,
  PRIMARY KEY (organization_id, record_id, revision, changed_at)
) PARTITION BY RANGE (changed_at);

CREATE TABLE portico.auto_number (
  organization_id uuid NOT NULL,
  field_id uuid NOT NULL,
  next_value bigint NOT NULL,
  PRIMARY KEY (organization_id, field_id)
) WITH (fillfactor = 50);

-- The searchable text of a record, folded (shared/search.ts): for each field one part, its tag first, parts separated by
-- U+001F. LIKE is not leakproof, so behind row-level security it could not drive the trigram index; therefore nobody reads
-- this table but search_records, whose first predicate is the organisation, twice: as asked and as bound.
CREATE TABLE portico.search_document (
  organization_id uuid NOT NULL,
  object_id uuid NOT NULL,
  record_id uuid NOT NULL,
  content text COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, record_id)
);
CREATE INDEX search_document_content ON portico.search_document
  USING gin (organization_id, object_id, content gin_trgm_ops);

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['record_directory', 'record_participant', 'record_history', 'auto_number', 'search_document']
  LOOP
    EXECUTE format('ALTER TABLE portico.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY tenant ON portico.%I USING (organization_id = (SELECT portico.current_organization()))', name);
  END LOOP;
END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON portico.record_directory, portico.record_participant, portico.auto_number TO portico_app;
GRANT SELECT, INSERT ON portico.record_history TO portico_app;
-- UPDATE and DELETE by key need to read the key, and nothing else.
GRANT INSERT, DELETE, UPDATE, SELECT (organization_id, record_id) ON portico.search_document TO portico_app;
CREATE POLICY search_function ON portico.search_document FOR SELECT TO portico_owner USING (true);

-- The records whose document holds every pattern. `tags` names the fields that the caller may read; null means all, and
-- then one document is one text. The longest pattern comes first: it alone drives the index.
CREATE FUNCTION portico.search_records(organization uuid, object uuid, patterns text[], tags text[])
RETURNS SETOF uuid
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = '' ROWS 200
AS $$
BEGIN
  IF organization IS DISTINCT FROM portico.current_organization() THEN
    RETURN;
  END IF;
  RETURN QUERY
    SELECT d.record_id
    FROM portico.search_document d
    WHERE d.organization_id = organization AND d.object_id = object
      AND d.content LIKE patterns[1] AND d.content LIKE ALL (patterns)
      AND (tags IS NULL OR NOT EXISTS (
        SELECT FROM pg_catalog.unnest(patterns) AS p (pattern)
        WHERE NOT EXISTS (
          SELECT FROM pg_catalog.unnest(pg_catalog.string_to_array(d.content, E'\x1f')) AS f (part)
          WHERE pg_catalog.left(f.part, 1) = ANY (tags) AND f.part LIKE p.pattern)));
END $$;
REVOKE ALL ON FUNCTION portico.search_records(uuid, uuid, text[], text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.search_records(uuid, uuid, text[], text[]) TO portico_app;
