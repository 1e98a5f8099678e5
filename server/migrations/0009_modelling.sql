-- Models that are edited, published and rolled back (shared/modelling).

-- A key is unique within its account: were it unique among all of them, creating an application would tell which keys
-- others use.
ALTER TABLE portico.application DROP CONSTRAINT application_app_key_key, ADD UNIQUE (account_id, app_key);

ALTER TABLE portico.object_definition
  -- Hidden, with its records kept.
  ADD COLUMN archived_at timestamptz(3),
  -- How many marks of search documents were ever given to its fields: a mark that was given once is not given again, or
  -- words that one field left behind would be taken for those of another.
  ADD COLUMN search_tags_given integer NOT NULL DEFAULT 0,
  -- Do the search documents of its records follow its fields? `building`: they are being written anew.
  ADD COLUMN search_state text NOT NULL DEFAULT 'ready' CHECK (search_state IN ('building', 'ready'));
UPDATE portico.object_definition o SET search_tags_given = (SELECT count(*) FROM portico.field_definition f
  WHERE f.app_id = o.app_id AND f.object_id = o.object_id AND f.search_tag IS NOT NULL);

ALTER TABLE portico.field_definition ADD COLUMN archived_at timestamptz(3);
ALTER TABLE portico.data_role_template ADD COLUMN actions text[] NOT NULL DEFAULT '{}';

CREATE TABLE portico.relationship_definition (
  app_id uuid NOT NULL REFERENCES portico.application,
  relationship_id uuid NOT NULL,
  relationship_key text NOT NULL CHECK (relationship_key ~ '^[a-z][a-z0-9-]{0,49}$'),
  label text NOT NULL,
  inverse_label text NOT NULL,
  cardinality text NOT NULL CHECK (cardinality IN ('one-to-many', 'many-to-many')),
  from_object_id uuid NOT NULL,
  to_object_id uuid NOT NULL,
  delete_rule text NOT NULL CHECK (delete_rule IN ('unlink', 'restrict', 'archive')),
  PRIMARY KEY (app_id, relationship_id),
  UNIQUE (app_id, relationship_key),
  FOREIGN KEY (app_id, from_object_id) REFERENCES portico.object_definition,
  FOREIGN KEY (app_id, to_object_id) REFERENCES portico.object_definition
);
ALTER TABLE portico.relationship_definition ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY application ON portico.relationship_definition TO portico_app
  USING (app_id IN (SELECT a.app_id FROM portico.application a));
CREATE POLICY owner ON portico.relationship_definition TO portico_owner USING (true);
GRANT SELECT ON portico.relationship_definition TO portico_app;

-- The release that the draft was begun from; 0 where there was none. What was published meanwhile must not be undone by it.
ALTER TABLE portico.model_draft ADD COLUMN based_on_release integer NOT NULL DEFAULT 0;
-- Nobody: published by `npm run model` or by the demo.
ALTER TABLE portico.model_release ALTER COLUMN published_by DROP NOT NULL;

-- Adds up what a statement answers for each organisation of an application: rows at stake, rows written. The transaction is
-- bound to one organisation after the other, so row-level security holds for each as for a caller of its own, and nobody
-- needs a way around the wall to count. It runs with the rights of whoever calls it: a builder reaches the organisations of
-- the account's own applications and no others. The statement names the organisation as $1, what it is given as $2.
CREATE FUNCTION portico.sum_over_organizations(application uuid, statement text, given jsonb) RETURNS bigint
LANGUAGE plpgsql SET search_path = ''
AS $$
DECLARE
  bound text := coalesce(current_setting('portico.organization_id', true), '');
  organizations uuid[] := ARRAY(SELECT o.organization_id FROM portico.organization o WHERE o.app_id = application);
  one uuid;
  answer bigint;
  total bigint := 0;
BEGIN
  FOREACH one IN ARRAY organizations LOOP
    PERFORM set_config('portico.organization_id', one::text, true);
    EXECUTE statement INTO answer USING one, given;
    total := total + coalesce(answer, 0);
  END LOOP;
  PERFORM set_config('portico.organization_id', bound, true);
  RETURN total;
END $$;
REVOKE ALL ON FUNCTION portico.sum_over_organizations(uuid, text, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.sum_over_organizations(uuid, text, jsonb) TO portico_app;
