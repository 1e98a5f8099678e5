-- When a record was made is in its document, too: the page that the newest records with a word fill is found without reading the
-- other records that hold it.
ALTER TABLE portico.search_document ADD COLUMN created_at timestamptz(3);

-- Entering all documents into the index of words one by one would take many times as long as making it anew.
DROP INDEX portico.search_document_words;
DO $$
DECLARE
  place record;
BEGIN
  FOR place IN
    SELECT g.organization_id, o.object_id, format('%I.%I', a.schema_name, o.table_name) AS records
    FROM portico.organization g JOIN portico.application a USING (app_id) JOIN portico.object_definition o USING (app_id)
    WHERE to_regclass(format('%I.%I', a.schema_name, o.table_name)) IS NOT NULL
  LOOP
    PERFORM set_config('portico.organization_id', place.organization_id::text, true);
    EXECUTE format($statement$
      UPDATE portico.search_document d SET created_at = t.created_at FROM %s t
      WHERE d.organization_id = $1 AND d.object_id = $2 AND t.organization_id = $1 AND t.record_id = d.record_id
    $statement$, place.records) USING place.organization_id, place.object_id;
  END LOOP;
  -- Of records that are gone there should be none.
  FOR place IN SELECT organization_id FROM portico.organization
  LOOP
    PERFORM set_config('portico.organization_id', place.organization_id::text, true);
    UPDATE portico.search_document SET created_at = updated_at
      WHERE organization_id = place.organization_id AND created_at IS NULL;
  END LOOP;
  PERFORM set_config('portico.organization_id', '', true);
END $$;
-- The default is for processes of the release before, as long as there are some.
ALTER TABLE portico.search_document ALTER COLUMN created_at SET DEFAULT now(), ALTER COLUMN created_at SET NOT NULL;
CREATE INDEX search_document_words ON portico.search_document
  USING gin (organization_id, object_id, audience, content gin_trgm_ops, title gin_trgm_ops);

-- The records that hold the words and that whoever asks may see, by when they were made: those behind (`after_at`, `after_id`),
-- or all where these are null. Never by similar titles.
CREATE FUNCTION portico.search_in_order(q portico.search_question, descending boolean, after_at timestamptz, after_id uuid,
  skip integer, take integer)
RETURNS SETOF uuid
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = ''
  SET enable_seqscan = off SET enable_indexscan = off SET enable_bitmapscan = on
AS $$
DECLARE
  direction CONSTANT text := CASE WHEN descending THEN ' DESC' ELSE ' ASC' END;
  behind CONSTANT text := CASE WHEN after_id IS NULL THEN ''
    ELSE ' AND (d.created_at, d.record_id) ' || CASE WHEN descending THEN '<' ELSE '>' END || ' ($13, $14)' END;
BEGIN
  IF q.organization IS DISTINCT FROM portico.current_organization() THEN
    RETURN;
  END IF;
  IF NOT portico.searches_by_words(q) AND q.audience IS NULL THEN
    PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_bitmapscan', 'off', true);
  END IF;
  RETURN QUERY EXECUTE 'SELECT d.record_id FROM ' || portico.search_source(q, portico.searches_by_words(q))
      || portico.search_words_condition(q) || behind
      || ' ORDER BY d.created_at' || direction || ', d.record_id' || direction || ' OFFSET $15 LIMIT $16'
    USING q.organization, q.objects, q.audience, q.user_id, q.data_role_ids, q.location_ids, q.only_location,
      q.patterns, q.digits, q.tags, q.whole, q.titled, after_at, after_id, skip, take;
END $$;
REVOKE ALL ON FUNCTION portico.search_in_order(portico.search_question, boolean, timestamptz, uuid, integer, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.search_in_order(portico.search_question, boolean, timestamptz, uuid, integer, integer)
  TO portico_app;
