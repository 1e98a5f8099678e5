-- One search over the records of every object. A search document now knows who may see its record, when it last changed and
-- what it is called, so that a page of results is found, ranked and counted in this table alone.

-- The largest index of the database is made anew below; meanwhile it would only slow the rows down.
DROP INDEX portico.search_document_content;

ALTER TABLE portico.search_document
  ADD COLUMN owner_user_id uuid,
  ADD COLUMN data_role_id uuid,
  ADD COLUMN location_id uuid,
  ADD COLUMN participant_ids uuid[] NOT NULL DEFAULT '{}',
  -- The folded name of the record; null where the field that names it is not searchable.
  ADD COLUMN title text COLLATE "C",
  ADD COLUMN updated_at timestamptz(3) NOT NULL DEFAULT now(),
  -- Everybody who may see the record, before locations narrow it: its owner, its role, its participants, or the organisation.
  -- An index on it takes a caller who sees little straight to that little.
  ADD COLUMN audience uuid[] NOT NULL GENERATED ALWAYS AS (participant_ids
    || CASE WHEN owner_user_id IS NULL AND data_role_id IS NULL THEN ARRAY[organization_id]
       ELSE array_remove(ARRAY[owner_user_id, data_role_id], NULL) END) STORED,
  -- Most changes of a record leave its words and its audience alone: there is room for the new version beside the old one.
  SET (fillfactor = 85);

-- What the documents that are there lack. Titles come from the part of the field that names the record.
DO $$
DECLARE
  place record;
BEGIN
  FOR place IN
    SELECT g.organization_id, o.object_id, format('%I.%I', a.schema_name, o.table_name) AS records,
      (SELECT f.search_tag FROM portico.field_definition f
        WHERE f.app_id = o.app_id AND f.object_id = o.object_id AND f.field_key = o.name_field_key) AS tag
    FROM portico.organization g JOIN portico.application a USING (app_id) JOIN portico.object_definition o USING (app_id)
  LOOP
    PERFORM set_config('portico.organization_id', place.organization_id::text, true);
    EXECUTE format($statement$
      UPDATE portico.search_document d SET owner_user_id = t.owner_user_id, data_role_id = t.data_role_id,
        location_id = t.location_id, updated_at = t.updated_at,
        participant_ids = ARRAY(SELECT p.user_id FROM portico.record_participant p
          WHERE p.organization_id = $1 AND p.record_id = d.record_id),
        title = (SELECT left(substr(part, 2), 255) FROM unnest(string_to_array(d.content, E'\x1f')) AS part
          WHERE left(part, 1) = $3 LIMIT 1)
      FROM %s t
      WHERE d.organization_id = $1 AND d.object_id = $2 AND t.organization_id = $1 AND t.record_id = d.record_id
    $statement$, place.records) USING place.organization_id, place.object_id, place.tag;
  END LOOP;
  PERFORM set_config('portico.organization_id', '', true);
END $$;

-- Telephone numbers are found by their digits from now on; the service writes those of older records when it starts.
UPDATE portico.object_definition o SET search_state = 'building'
WHERE EXISTS (SELECT FROM portico.field_definition f
  WHERE f.app_id = o.app_id AND f.object_id = o.object_id AND f.searchable AND f.data_type = 'phone');

CREATE INDEX search_document_words ON portico.search_document
  USING gin (organization_id, object_id, audience, content gin_trgm_ops, title gin_trgm_ops);
-- The best of very many: titles that begin with what was searched for.
CREATE INDEX search_document_title ON portico.search_document (organization_id, title) WHERE title IS NOT NULL;

-- May somebody who reads only the fields of `tags` find this document? Each word must occur in one of them, or the digits.
CREATE FUNCTION portico.shows_words(content text, patterns text[], digits text, tags text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = ''
RETURN tags IS NULL
  OR NOT EXISTS (
    SELECT FROM pg_catalog.unnest(patterns) AS p (pattern)
    WHERE NOT EXISTS (
      SELECT FROM pg_catalog.unnest(pg_catalog.string_to_array(content, E'\x1f')) AS f (part)
      WHERE pg_catalog.strpos(tags, pg_catalog.left(f.part, 1)) > 0 AND f.part LIKE p.pattern))
  OR EXISTS (
    SELECT FROM pg_catalog.unnest(pg_catalog.string_to_array(content, E'\x1f')) AS f (part)
    WHERE pg_catalog.strpos(tags, pg_catalog.left(f.part, 1)) > 0 AND f.part LIKE digits);

DROP FUNCTION portico.search_records(uuid, uuid, text[], text[]);

-- The records of one object whose document holds every pattern, or the digits of a telephone number (null: none are asked
-- for). `tags` are those of the fields that the caller may read; null means all, and then one document is one text. The
-- longest pattern comes first: it alone drives the index.
CREATE FUNCTION portico.search_records(organization uuid, object uuid, patterns text[], digits text, tags text)
RETURNS SETOF uuid
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = '' ROWS 200
AS $$
BEGIN
  IF organization IS DISTINCT FROM portico.current_organization() THEN
    RETURN;
  END IF;
  IF digits IS NULL THEN
    RETURN QUERY
      SELECT d.record_id FROM portico.search_document d
      WHERE d.organization_id = organization AND d.object_id = object
        AND d.content LIKE patterns[1] AND d.content LIKE ALL (patterns)
        AND portico.shows_words(d.content, patterns, digits, tags);
  ELSE
    RETURN QUERY
      SELECT d.record_id FROM portico.search_document d
      WHERE d.organization_id = organization AND d.object_id = object
        AND ((d.content LIKE patterns[1] AND d.content LIKE ALL (patterns)) OR d.content LIKE digits)
        AND portico.shows_words(d.content, patterns, digits, tags);
  END IF;
END $$;
REVOKE ALL ON FUNCTION portico.search_records(uuid, uuid, text[], text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.search_records(uuid, uuid, text[], text, text) TO portico_app;

-- What is searched for everywhere, and by whom.
CREATE TYPE portico.search_question AS (
  organization uuid,
  -- The objects that are searched, and for each the tags of the fields that the caller may read; null means all of them.
  objects uuid[],
  tags text[],
  -- Those of them whose names the caller may read.
  titled uuid[],
  -- Null for a caller who sees everything. Else the organisation, the user and the roles: one of them must be in the audience.
  audience uuid[],
  user_id uuid,
  data_role_ids uuid[],
  -- Null: every location.
  location_ids uuid[],
  -- Only records of this location; null: of any.
  only_location uuid,
  -- LIKE patterns, the longest first; the digits of a telephone number as one; the whole, folded.
  patterns text[],
  digits text,
  whole text
);

-- Which documents the caller may find at all, as a condition on `d` with the question as $1 to $9. The record envelope as
-- shared/access/envelope.ts has it; said again here because nobody but these functions reads the table, and a limit or a
-- count behind them would come too late. server/src/features/global-search holds both to the same answers.
CREATE FUNCTION portico.search_condition(q portico.search_question) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = ''
RETURN 'd.organization_id = $1'
  || CASE WHEN pg_catalog.cardinality(q.objects) = 1 THEN ' AND d.object_id = ($2)[1]' ELSE ' AND d.object_id = ANY ($2)' END
  || CASE WHEN q.audience IS NULL THEN '' ELSE ' AND d.audience && $3
      AND ((d.owner_user_id IS NULL AND d.data_role_id IS NULL) OR $4 = ANY (d.audience)
        OR (d.data_role_id = ANY ($5)' || CASE WHEN q.location_ids IS NULL THEN ''
            ELSE ' AND (d.location_id IS NULL OR d.location_id = ANY ($6))' END || '))' END
  || CASE WHEN q.only_location IS NULL THEN '' ELSE ' AND d.location_id = $7' END;

-- Words of three letters and more drive the trigram index, all of them; shorter ones are kept from it (|| ''): it would be
-- read as a whole for them.
CREATE FUNCTION portico.search_words_condition(q portico.search_question) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = ''
RETURN (SELECT CASE WHEN q.digits IS NULL THEN ' AND (' || words || ')' ELSE ' AND ((' || words || ') OR d.content LIKE $9)' END
    FROM (SELECT pg_catalog.string_agg(CASE WHEN pg_catalog.length(q.patterns[n]) < 5 THEN '(d.content || '''')' ELSE 'd.content' END
      || pg_catalog.format(' LIKE ($8)[%s]', n), ' AND ') AS words FROM pg_catalog.generate_subscripts(q.patterns, 1) AS n) AS w)
  || CASE WHEN pg_catalog.array_remove(q.tags, NULL) = '{}' THEN ''
    ELSE ' AND portico.shows_words(d.content, $8, $9, ($10)[pg_catalog.array_position($2, d.object_id)])' END;

-- How well a document's title answers: 1 the title itself, 2 its beginning, 3 beginnings of its words, 4 parts of it,
-- 5 the words are elsewhere in the record.
-- `starts` are the patterns of words that begin so. Without a subquery, so that it is written into its query: called for each
-- row it took 10 µs.
CREATE FUNCTION portico.search_tier(title text, whole text, patterns text[], starts text[]) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN title IS NULL OR NOT title LIKE ALL (patterns) THEN 5
  WHEN title = whole THEN 1
  WHEN starts_with(title, whole) THEN 2
  WHEN ' ' || title LIKE ALL (starts) THEN 3
  ELSE 4
END;

CREATE FUNCTION portico.search_starts(patterns text[]) RETURNS text[]
LANGUAGE sql IMMUTABLE SET search_path = ''
RETURN ARRAY(SELECT '% ' || pg_catalog.substr(p.pattern, 2) FROM pg_catalog.unnest(patterns) AS p (pattern));

DO $outer$
DECLARE
  -- Where pg_trgm is: somebody else's database may keep its extensions in a schema of their own.
  trigrams text := (SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'pg_trgm');
BEGIN
  -- The most similar titles, for words that occur nowhere: at most 50, of which nobody reads the fiftieth. The setting is
  -- what decides; 0.4 finds a name with one wrong, missing or swapped letter in six.
  EXECUTE format($define$
    CREATE FUNCTION portico.search_similar(q portico.search_question)
    RETURNS TABLE (record_id uuid, object_id uuid, tier integer, similarity real, updated_at timestamptz)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = '' SET enable_seqscan = off SET enable_indexscan = off
    AS $function$
    BEGIN
      IF q.organization IS DISTINCT FROM portico.current_organization() OR length(q.whole) < 3 OR q.digits IS NOT NULL THEN
        RETURN;
      END IF;
      PERFORM set_config('pg_trgm.word_similarity_threshold', '0.4', true);
      RETURN QUERY EXECUTE
        'SELECT d.record_id, d.object_id, 6, %1$s.word_similarity($11, d.title), d.updated_at::timestamptz
         FROM portico.search_document d
         WHERE ' || portico.search_condition(q) || ' AND $11 OPERATOR(%1$s.<%%) d.title AND d.object_id = ANY ($12)
         ORDER BY 4 DESC, 5 DESC, 1 DESC LIMIT 50'
        USING q.organization, q.objects, q.audience, q.user_id, q.data_role_ids, q.location_ids, q.only_location,
          q.patterns, q.digits, q.tags, q.whole, q.titled;
    END $function$;
  $define$, trigrams);
END $outer$;

CREATE TYPE portico.search_candidate AS (record_id uuid, object_id uuid, updated_at timestamptz, title text);

-- Documents that hold the words, in no order, at most `most`. `extra` narrows them further; $13 in it is a LIKE pattern.
CREATE FUNCTION portico.search_candidates(q portico.search_question, extra text, most integer)
RETURNS portico.search_candidate[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = ''
AS $$
DECLARE
  found portico.search_candidate[];
BEGIN
  IF q.organization IS DISTINCT FROM portico.current_organization() THEN
    RETURN NULL;
  END IF;
  EXECUTE 'SELECT array_agg(ROW(d.record_id, d.object_id, d.updated_at, d.title)::portico.search_candidate)
    FROM (SELECT d.record_id, d.object_id, d.updated_at, CASE WHEN d.object_id = ANY ($12) THEN d.title END AS title
      FROM portico.search_document d
      WHERE ' || portico.search_condition(q) || portico.search_words_condition(q) || extra || ' LIMIT ' || most || ') AS d'
    INTO found
    USING q.organization, q.objects, q.audience, q.user_id, q.data_role_ids, q.location_ids, q.only_location,
      q.patterns, q.digits, q.tags, q.whole, q.titled,
      replace(replace(replace(q.whole, '\', '\\'), '%', '\%'), '_', '\_') || '%';
  RETURN coalesce(found, '{}');
END $$;

-- A page of what holds the words, best first. Where more than 10,000 documents do, ranking them all would take longer than
-- anybody waits: then titles that begin with what was searched for come first, and then the best of 10,000 others.
-- The planner cannot know how rare a word is, so it is told which index to take: the trigrams; where they are of no use,
-- the key of the organisation.
CREATE FUNCTION portico.search_page(q portico.search_question, skip integer, take integer)
RETURNS TABLE (record_id uuid, object_id uuid, tier integer, similarity real, updated_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = ''
  SET enable_seqscan = off SET enable_indexscan = off SET enable_bitmapscan = on
AS $$
DECLARE
  found portico.search_candidate[];
  starts text[] := portico.search_starts(q.patterns);
BEGIN
  IF length(q.patterns[1]) < 5 AND q.audience IS NULL THEN
    PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_bitmapscan', 'off', true);
  END IF;
  found := portico.search_candidates(q, '', 10001);
  IF found = '{}' THEN
    RETURN QUERY SELECT * FROM portico.search_similar(q) OFFSET skip LIMIT take;
    RETURN;
  END IF;
  IF cardinality(found) > 10000 THEN
    PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_bitmapscan', 'off', true);
    found := found || portico.search_candidates(q, ' AND d.title LIKE $13 AND d.object_id = ANY ($12) ORDER BY d.title', 5000);
  END IF;
  RETURN QUERY
    SELECT f.record_id, f.object_id, f.tier, NULL::real, f.updated_at
    FROM (SELECT DISTINCT c.*, portico.search_tier(c.title, q.whole, q.patterns, starts) AS tier FROM unnest(found) AS c) AS f
    ORDER BY f.tier, f.updated_at DESC, f.record_id DESC OFFSET skip LIMIT take;
END $$;

-- How many records the same question finds, exactly.
CREATE FUNCTION portico.search_count(q portico.search_question) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = '' SET enable_seqscan = off SET enable_indexscan = off
AS $$
DECLARE
  total bigint;
BEGIN
  IF q.organization IS DISTINCT FROM portico.current_organization() THEN
    RETURN 0;
  END IF;
  EXECUTE 'SELECT count(*) FROM portico.search_document d
    WHERE ' || portico.search_condition(q) || portico.search_words_condition(q) INTO total
    USING q.organization, q.objects, q.audience, q.user_id, q.data_role_ids, q.location_ids, q.only_location,
      q.patterns, q.digits, q.tags;
  IF total = 0 THEN
    SELECT count(*) INTO total FROM portico.search_similar(q);
  END IF;
  RETURN total;
END $$;

-- Titles that complete what somebody types: those that begin with it, then those that hold its words; where there are none,
-- similar ones. It is asked at every key, so it looks at 1,000 titles and not at more.
CREATE FUNCTION portico.search_titles(q portico.search_question, take integer)
RETURNS TABLE (record_id uuid, object_id uuid, tier integer, similarity real, updated_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = ''
  SET enable_seqscan = off SET enable_indexscan = off SET enable_bitmapscan = on
AS $$
DECLARE
  found portico.search_candidate[] := '{}';
  starts text[] := portico.search_starts(q.patterns);
  words text := (SELECT string_agg(CASE WHEN length(q.patterns[n]) < 5 THEN '(d.title || '''')' ELSE 'd.title' END
    || format(' LIKE ($8)[%s]', n), ' AND ') FROM generate_subscripts(q.patterns, 1) AS n);
BEGIN
  IF length(q.patterns[1]) >= 5 OR q.audience IS NOT NULL THEN
    found := portico.search_candidates(q, ' AND d.object_id = ANY ($12) AND ' || words, 1000);
  END IF;
  IF q.audience IS NULL AND cardinality(found) IN (0, 1000) THEN
    PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_bitmapscan', 'off', true);
    found := found || portico.search_candidates(q, ' AND d.title LIKE $13 AND d.object_id = ANY ($12) ORDER BY d.title', take);
  END IF;
  IF found = '{}' THEN
    RETURN QUERY SELECT * FROM portico.search_similar(q) LIMIT take;
    RETURN;
  END IF;
  RETURN QUERY
    SELECT f.record_id, f.object_id, f.tier, NULL::real, f.updated_at
    FROM (SELECT DISTINCT c.*, portico.search_tier(c.title, q.whole, q.patterns, starts) AS tier FROM unnest(found) AS c) AS f
    ORDER BY f.tier, f.title, f.updated_at DESC, f.record_id DESC LIMIT take;
END $$;

REVOKE ALL ON FUNCTION portico.search_candidates(portico.search_question, text, integer) FROM PUBLIC;
REVOKE ALL ON FUNCTION portico.search_similar(portico.search_question) FROM PUBLIC;
REVOKE ALL ON FUNCTION portico.search_page(portico.search_question, integer, integer) FROM PUBLIC;
REVOKE ALL ON FUNCTION portico.search_count(portico.search_question) FROM PUBLIC;
REVOKE ALL ON FUNCTION portico.search_titles(portico.search_question, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.search_page(portico.search_question, integer, integer) TO portico_app;
GRANT EXECUTE ON FUNCTION portico.search_count(portico.search_question) TO portico_app;
GRANT EXECUTE ON FUNCTION portico.search_titles(portico.search_question, integer) TO portico_app;
