-- Typed links between records (shared/relationships).

-- Native ones come with the native modules and are no part of the model document; their keys hold an underscore, which
-- those of builders cannot, so that neither ever takes the other's.
ALTER TABLE portico.relationship_definition
  ADD COLUMN kind text NOT NULL DEFAULT 'custom' CHECK (kind IN ('custom', 'native')),
  DROP CONSTRAINT relationship_definition_relationship_key_check,
  ADD CONSTRAINT relationship_definition_key CHECK (CASE kind
    WHEN 'custom' THEN relationship_key ~ '^[a-z][a-z0-9-]{0,49}$'
    ELSE relationship_key ~ '^[a-z][a-z0-9_]{0,79}$' AND strpos(relationship_key, '_') > 0 END);

CREATE TABLE portico.record_relationship (
  organization_id uuid NOT NULL,
  -- A UUIDv7: the order of the ids is the order of creation.
  relationship_id uuid NOT NULL,
  app_id uuid NOT NULL,
  definition_id uuid NOT NULL,
  from_record_id uuid NOT NULL,
  to_record_id uuid NOT NULL,
  -- Is the definition one-to-many? Said again here, so that an index can hold it against writers who race.
  single boolean NOT NULL,
  created_at timestamptz(3) NOT NULL,
  created_by_kind text NOT NULL,
  created_by_id text NOT NULL,
  PRIMARY KEY (organization_id, relationship_id),
  CHECK (from_record_id <> to_record_id),
  FOREIGN KEY (app_id, definition_id) REFERENCES portico.relationship_definition,
  FOREIGN KEY (organization_id, from_record_id) REFERENCES portico.record_directory,
  FOREIGN KEY (organization_id, to_record_id) REFERENCES portico.record_directory
);
CREATE UNIQUE INDEX record_relationship_pair
  ON portico.record_relationship (organization_id, definition_id, from_record_id, to_record_id);
CREATE UNIQUE INDEX record_relationship_single
  ON portico.record_relationship (organization_id, definition_id, to_record_id) WHERE single;
-- What a record is related to, newest first, from either end.
CREATE INDEX record_relationship_from
  ON portico.record_relationship (organization_id, from_record_id, definition_id, relationship_id);
CREATE INDEX record_relationship_to
  ON portico.record_relationship (organization_id, to_record_id, definition_id, relationship_id);

ALTER TABLE portico.record_relationship ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON portico.record_relationship
  USING (organization_id = (SELECT portico.current_organization()));
GRANT SELECT, INSERT, DELETE ON portico.record_relationship TO portico_app;
