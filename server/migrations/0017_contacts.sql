-- Contacts that were made one (features/modules/contacts), so that it can be undone for thirty days.
CREATE TABLE portico.contact_merge (
  organization_id uuid NOT NULL,
  -- The contact that was archived; it can be a part of one other contact at a time.
  merged_record_id uuid NOT NULL,
  survivor_record_id uuid NOT NULL,
  -- The change of the survivor that the merge made, in its history; null where it took nothing over.
  survivor_revision bigint,
  merged_at timestamptz(3) NOT NULL,
  -- What referred to the one and now refers to the other: {"references": [{objectId, fieldKey, recordId}],
  -- "links": [{definitionId, fromRecordId, toRecordId}]}, the links as they were before.
  moved jsonb NOT NULL,
  PRIMARY KEY (organization_id, merged_record_id),
  FOREIGN KEY (organization_id, merged_record_id) REFERENCES portico.record_directory,
  FOREIGN KEY (organization_id, survivor_record_id) REFERENCES portico.record_directory
);
CREATE INDEX contact_merge_survivor ON portico.contact_merge (organization_id, survivor_record_id);
ALTER TABLE portico.contact_merge ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON portico.contact_merge
  USING (organization_id = (SELECT portico.current_organization()));
GRANT SELECT, INSERT, DELETE ON portico.contact_merge TO portico_app;

DO $outer$
DECLARE
  -- Where pg_trgm is: somebody else's database may keep its extensions in a schema of their own.
  trigrams text := (SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'pg_trgm');
BEGIN
  -- Records of one object whose names are like those given, at most ten for each name. Names and titles are folded. Who
  -- asks still has to hold each record against what the caller sees.
  EXECUTE format($define$
    CREATE FUNCTION portico.similar_names(organization uuid, object uuid, names text[])
    RETURNS TABLE (ordinal bigint, record_id uuid, similarity real)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = '' SET enable_seqscan = off
      SET pg_trgm.similarity_threshold = 0.6
    AS $function$
    BEGIN
      IF organization IS DISTINCT FROM portico.current_organization() THEN
        RETURN;
      END IF;
      RETURN QUERY
        SELECT n.ordinal, s.record_id, s.similarity
        FROM unnest(names) WITH ORDINALITY AS n (name, ordinal), LATERAL (
          SELECT d.record_id, %1$s.similarity(d.title, n.name) AS similarity FROM portico.search_document d
          WHERE d.organization_id = organization AND d.object_id = object AND d.title OPERATOR(%1$s.%%) n.name
          ORDER BY 2 DESC, 1 LIMIT 10) AS s;
    END $function$;
  $define$, trigrams);
END $outer$;
REVOKE ALL ON FUNCTION portico.similar_names(uuid, uuid, text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.similar_names(uuid, uuid, text[]) TO portico_app;
