-- Search documents are kept in sixteen parts, each organisation in one: the trigrams of a word are then looked up among the
-- documents of one organisation and of those few that share its part, not among those of all.
ALTER TABLE portico.search_document RENAME TO search_document_whole;
ALTER INDEX portico.search_document_pkey RENAME TO search_document_whole_pkey;

CREATE TABLE portico.search_document (
  organization_id uuid NOT NULL,
  object_id uuid NOT NULL,
  record_id uuid NOT NULL,
  content text COLLATE "C" NOT NULL,
  owner_user_id uuid,
  data_role_id uuid,
  location_id uuid,
  participant_ids uuid[] NOT NULL DEFAULT '{}',
  title text COLLATE "C",
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  -- Everybody who may see the record, before locations narrow it; see 0016.
  audience uuid[] NOT NULL GENERATED ALWAYS AS (participant_ids
    || CASE WHEN owner_user_id IS NULL AND data_role_id IS NULL THEN ARRAY[organization_id]
       ELSE array_remove(ARRAY[owner_user_id, data_role_id], NULL) END) STORED,
  PRIMARY KEY (organization_id, record_id)
) PARTITION BY HASH (organization_id);

DO $$
DECLARE
  part text;
BEGIN
  FOR n IN 0..15 LOOP
    part := 'portico.search_document_' || n;
    EXECUTE format('CREATE TABLE %s PARTITION OF portico.search_document FOR VALUES WITH (MODULUS 16, REMAINDER %s)
      WITH (fillfactor = 85)', part, n);
    -- Without row-level security of its own: nobody but its owner may touch it directly, and who is held by it may not read
    -- the statistics of a table, by which search_source goes.
  END LOOP;
END $$;

ALTER TABLE portico.search_document ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY moved ON portico.search_document USING (true);
ALTER TABLE portico.search_document_whole NO FORCE ROW LEVEL SECURITY;
INSERT INTO portico.search_document (organization_id, object_id, record_id, content, title,
  owner_user_id, data_role_id, location_id, participant_ids, updated_at)
SELECT organization_id, object_id, record_id, content, title,
  owner_user_id, data_role_id, location_id, participant_ids, updated_at
FROM portico.search_document_whole;
DROP TABLE portico.search_document_whole;
DROP POLICY moved ON portico.search_document;

CREATE POLICY tenant ON portico.search_document USING (organization_id = (SELECT portico.current_organization()));
CREATE POLICY search_function ON portico.search_document FOR SELECT TO portico_owner USING (true);
GRANT INSERT, DELETE, UPDATE, SELECT (organization_id, record_id) ON portico.search_document TO portico_app;

CREATE INDEX search_document_words ON portico.search_document
  USING gin (organization_id, object_id, audience, content gin_trgm_ops, title gin_trgm_ops);
CREATE INDEX search_document_title ON portico.search_document (organization_id, title) WHERE title IS NOT NULL;

-- The part in which the documents of an organisation are.
CREATE FUNCTION portico.search_part(organization uuid) RETURNS text
LANGUAGE sql STABLE SET search_path = ''
RETURN (SELECT 'search_document_' || n FROM pg_catalog.generate_series(0, 15) AS n
  WHERE pg_catalog.satisfies_hash_partition('portico.search_document'::pg_catalog.regclass, 16, n, organization));

-- Which share of a part's documents has one of these values, as far as its statistics know; of what is rare, 0.
CREATE FUNCTION portico.search_share(part text, attribute text, sought uuid[]) RETURNS real
LANGUAGE sql STABLE SET search_path = ''
RETURN (SELECT coalesce(pg_catalog.sum(m.share), 0) FROM pg_catalog.pg_stats AS s,
    ROWS FROM (
      pg_catalog.unnest(coalesce(s.most_common_elems::text, s.most_common_vals::text)::uuid[]),
      pg_catalog.unnest(coalesce(s.most_common_elem_freqs, s.most_common_freqs))) AS m (value, share)
  WHERE s.schemaname = 'portico' AND s.tablename = part AND s.attname = attribute AND m.value = ANY (sought));

-- What is searched and which documents of it the caller may find at all: a part as `d`, and a condition with the question as
-- $1 to $7. The record envelope as shared/access/envelope.ts has it; said again here because nobody but these functions
-- reads the table, and a limit or a count behind them would come too late.
-- `by_words`: do words drive the index? Then it is asked for them alone wherever many documents of the part are of this
-- organisation, object and audience, which are looked at afterwards: intersecting the few documents of a telephone number with
-- a list of a million took 48 ms instead of 3. `IS NOT DISTINCT FROM` and `array_position` keep the index out of it.
CREATE FUNCTION portico.search_source(q portico.search_question, by_words boolean) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = ''
AS $$
DECLARE
  part text := portico.search_part(q.organization);
  is_most boolean := by_words AND portico.search_share(part, 'organization_id', ARRAY[q.organization]) > 0.3;
  is_rare_object boolean := cardinality(q.objects) = 1
    AND NOT (by_words AND portico.search_share(part, 'object_id', q.objects) > 0.1);
  is_narrow boolean := q.audience IS NOT NULL
    AND NOT (by_words AND portico.search_share(part, 'audience', q.audience) > 0.02);
BEGIN
  RETURN 'portico.' || part || ' d WHERE d.organization_id ' || CASE WHEN is_most THEN 'IS NOT DISTINCT FROM' ELSE '=' END || ' $1'
    || CASE WHEN is_rare_object THEN ' AND d.object_id = ($2)[1]' ELSE ' AND array_position($2, d.object_id) IS NOT NULL' END
    || CASE WHEN is_narrow THEN ' AND d.audience && $3' ELSE '' END
    || CASE WHEN q.audience IS NULL THEN '' ELSE ' AND ((d.owner_user_id IS NULL AND d.data_role_id IS NULL) OR $4 = ANY (d.audience)
        OR (d.data_role_id = ANY ($5)' || CASE WHEN q.location_ids IS NULL THEN ''
          ELSE ' AND (d.location_id IS NULL OR d.location_id = ANY ($6))' END || '))' END
    || CASE WHEN q.only_location IS NULL THEN '' ELSE ' AND d.location_id = $7' END;
END $$;

-- Is there something that drives the index of words: a word of three letters, or the digits of a number?
CREATE FUNCTION portico.searches_by_words(q portico.search_question) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = ''
RETURN pg_catalog.length(q.patterns[1]) >= 5 OR q.digits IS NOT NULL;

-- Words of three letters and more drive the trigram index, all of them; shorter ones are kept from it (|| ''): it would be
-- read as a whole for them. A number in groups of three digits and less is looked for by its digits alone: a third of all
-- contacts may have the 33 of France somewhere.
CREATE OR REPLACE FUNCTION portico.search_words_condition(q portico.search_question) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = ''
RETURN (SELECT CASE WHEN q.digits IS NULL THEN ' AND (' || words || ')'
      WHEN q.patterns = ARRAY[q.digits] OR pg_catalog.length(q.patterns[1]) < 6 THEN ' AND d.content LIKE $9'
      ELSE ' AND ((' || words || ') OR d.content LIKE $9)' END
    FROM (SELECT pg_catalog.string_agg(CASE WHEN pg_catalog.length(q.patterns[n]) < 5 THEN '(d.content || '''')' ELSE 'd.content' END
      || pg_catalog.format(' LIKE ($8)[%s]', n), ' AND ') AS words FROM pg_catalog.generate_subscripts(q.patterns, 1) AS n) AS w)
  || CASE WHEN pg_catalog.array_remove(q.tags, NULL) = '{}' THEN ''
    ELSE ' AND portico.shows_words(d.content, $8, $9, ($10)[pg_catalog.array_position($2, d.object_id)])' END;

-- The records of one object that hold the words; as in 0016, in the part of the organisation.
CREATE OR REPLACE FUNCTION portico.search_records(organization uuid, object uuid, patterns text[], digits text, tags text)
RETURNS SETOF uuid
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = '' SET enable_seqscan = off SET enable_indexscan = off ROWS 200
AS $$
DECLARE
  q portico.search_question;
BEGIN
  IF organization IS DISTINCT FROM portico.current_organization() THEN
    RETURN;
  END IF;
  q.organization := organization;
  q.objects := ARRAY[object];
  q.tags := ARRAY[tags];
  q.patterns := patterns;
  q.digits := digits;
  RETURN QUERY EXECUTE 'SELECT d.record_id FROM ' || portico.search_source(q, portico.searches_by_words(q))
      || portico.search_words_condition(q)
    USING q.organization, q.objects, q.audience, q.user_id, q.data_role_ids, q.location_ids, q.only_location,
      q.patterns, q.digits, q.tags;
END $$;

DO $outer$
DECLARE
  -- Where pg_trgm is: somebody else's database may keep its extensions in a schema of their own.
  trigrams text := (SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'pg_trgm');
BEGIN
  EXECUTE format($define$
    CREATE OR REPLACE FUNCTION portico.search_similar(q portico.search_question)
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
         FROM ' || portico.search_source(q, true) || ' AND $11 OPERATOR(%1$s.<%%) d.title
           AND array_position($12, d.object_id) IS NOT NULL
         ORDER BY 4 DESC, 5 DESC, 1 DESC LIMIT 50'
        USING q.organization, q.objects, q.audience, q.user_id, q.data_role_ids, q.location_ids, q.only_location,
          q.patterns, q.digits, q.tags, q.whole, q.titled;
    END $function$;
  $define$, trigrams);
  EXECUTE format($define$
    CREATE OR REPLACE FUNCTION portico.similar_names(organization uuid, object uuid, names text[])
    RETURNS TABLE (ordinal bigint, record_id uuid, similarity real)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = '' SET enable_seqscan = off SET enable_indexscan = off
    AS $function$
    DECLARE
      q portico.search_question;
    BEGIN
      IF organization IS DISTINCT FROM portico.current_organization() THEN
        RETURN;
      END IF;
      PERFORM set_config('pg_trgm.similarity_threshold', '0.6', true);
      q.organization := organization;
      q.objects := ARRAY[object];
      RETURN QUERY EXECUTE
        'SELECT n.ordinal, s.record_id, s.similarity
         FROM unnest($3) WITH ORDINALITY AS n (name, ordinal), LATERAL (
           SELECT d.record_id, %1$s.similarity(d.title, n.name) AS similarity
           FROM ' || portico.search_source(q, true) || ' AND d.title OPERATOR(%1$s.%%) n.name
           ORDER BY 2 DESC, 1 LIMIT 10) AS s'
        USING q.organization, q.objects, names;
    END $function$;
  $define$, trigrams);
END $outer$;

DROP FUNCTION portico.search_candidates(portico.search_question, text, integer);

-- Documents that hold the words, in no order, at most `most`. `extra` narrows them further; $13 in it is a LIKE pattern.
CREATE FUNCTION portico.search_candidates(q portico.search_question, by_words boolean, extra text, most integer)
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
    FROM (SELECT d.record_id, d.object_id, d.updated_at, CASE WHEN array_position($12, d.object_id) IS NOT NULL THEN d.title END AS title
      FROM ' || portico.search_source(q, by_words) || portico.search_words_condition(q) || extra || ' LIMIT ' || most || ') AS d'
    INTO found
    USING q.organization, q.objects, q.audience, q.user_id, q.data_role_ids, q.location_ids, q.only_location,
      q.patterns, q.digits, q.tags, q.whole, q.titled,
      replace(replace(replace(q.whole, '\', '\\'), '%', '\%'), '_', '\_') || '%';
  RETURN coalesce(found, '{}');
END $$;

CREATE OR REPLACE FUNCTION portico.search_page(q portico.search_question, skip integer, take integer)
RETURNS TABLE (record_id uuid, object_id uuid, tier integer, similarity real, updated_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = ''
  SET enable_seqscan = off SET enable_indexscan = off SET enable_bitmapscan = on
AS $$
DECLARE
  found portico.search_candidate[];
  starts text[] := portico.search_starts(q.patterns);
BEGIN
  IF NOT portico.searches_by_words(q) AND q.audience IS NULL THEN
    PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_bitmapscan', 'off', true);
  END IF;
  found := portico.search_candidates(q, portico.searches_by_words(q), '', 10001);
  IF found = '{}' THEN
    RETURN QUERY SELECT * FROM portico.search_similar(q) OFFSET skip LIMIT take;
    RETURN;
  END IF;
  IF cardinality(found) > 10000 THEN
    PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_bitmapscan', 'off', true);
    found := found || portico.search_candidates(q, false,
      ' AND d.title LIKE $13 AND array_position($12, d.object_id) IS NOT NULL ORDER BY d.title', 5000);
    -- By its id: telling candidates apart by all they hold took longer than finding them.
    found := ARRAY(SELECT ROW(c.record_id, c.object_id, c.updated_at, c.title)::portico.search_candidate
      FROM (SELECT DISTINCT ON (f.record_id) f.* FROM unnest(found) AS f) AS c);
  END IF;
  RETURN QUERY
    SELECT f.record_id, f.object_id, f.tier, NULL::real, f.updated_at
    FROM (SELECT c.*, portico.search_tier(c.title, q.whole, q.patterns, starts) AS tier FROM unnest(found) AS c) AS f
    ORDER BY f.tier, f.updated_at DESC, f.record_id DESC OFFSET skip LIMIT take;
END $$;

CREATE OR REPLACE FUNCTION portico.search_count(q portico.search_question) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = '' SET enable_seqscan = off SET enable_indexscan = off
AS $$
DECLARE
  total bigint;
BEGIN
  IF q.organization IS DISTINCT FROM portico.current_organization() THEN
    RETURN 0;
  END IF;
  EXECUTE 'SELECT count(*) FROM ' || portico.search_source(q, portico.searches_by_words(q)) || portico.search_words_condition(q)
    INTO total
    USING q.organization, q.objects, q.audience, q.user_id, q.data_role_ids, q.location_ids, q.only_location,
      q.patterns, q.digits, q.tags;
  IF total = 0 THEN
    SELECT count(*) INTO total FROM portico.search_similar(q);
  END IF;
  RETURN total;
END $$;

CREATE OR REPLACE FUNCTION portico.search_titles(q portico.search_question, take integer)
RETURNS TABLE (record_id uuid, object_id uuid, tier integer, similarity real, updated_at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = ''
  SET enable_seqscan = off SET enable_indexscan = off SET enable_bitmapscan = on
AS $$
DECLARE
  found portico.search_candidate[] := '{}';
  starts text[] := portico.search_starts(q.patterns);
  words text := (SELECT string_agg(CASE WHEN length(q.patterns[n]) < 5 THEN '(d.title || '''')' ELSE 'd.title' END
    || format(' LIKE ($8)[%s]', n), ' AND ') FROM generate_subscripts(q.patterns, 1) AS n);
  titled text := ' AND array_position($12, d.object_id) IS NOT NULL AND ';
BEGIN
  IF length(q.patterns[1]) >= 5 OR q.audience IS NOT NULL THEN
    found := portico.search_candidates(q, portico.searches_by_words(q), titled || words, 1000);
  END IF;
  IF q.audience IS NULL AND cardinality(found) IN (0, 1000) THEN
    PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_bitmapscan', 'off', true);
    found := found || portico.search_candidates(q, false, titled || 'd.title LIKE $13 ORDER BY d.title', take);
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

DROP FUNCTION portico.search_condition(portico.search_question);
REVOKE ALL ON FUNCTION portico.search_source(portico.search_question, boolean) FROM PUBLIC;
REVOKE ALL ON FUNCTION portico.search_share(text, text, uuid[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION portico.search_candidates(portico.search_question, boolean, text, integer) FROM PUBLIC;

-- Notes of merges of contacts go when the merge can no longer be taken back, and are replaced when two are merged again.
CREATE POLICY owner ON portico.contact_merge TO portico_owner USING (true);
GRANT UPDATE ON portico.contact_merge TO portico_app;

-- The indexes by which lists and counts of records find what a caller sees (shared/modelling/physical-table.ts), of the tables
-- that are there already.
DO $$
DECLARE
  place record;
  rest text := 'created_at, record_id) INCLUDE (location_id) WHERE archived_at IS NULL';
BEGIN
  FOR place IN
    SELECT a.schema_name, format('%I.%I', a.schema_name, o.table_name) AS records, replace(o.object_id::text, '-', '') AS id
    FROM portico.object_definition o JOIN portico.application a USING (app_id)
    WHERE to_regclass(format('%I.%I', a.schema_name, o.table_name)) IS NOT NULL
  LOOP
    EXECUTE format('DROP INDEX IF EXISTS %1$I.%2$I, %1$I.%3$I, %1$I.%4$I', place.schema_name,
      'ix_' || place.id || '_createdAt', 'ix_' || place.id || '_ownerUserId', 'ix_' || place.id || '_dataRoleId');
    EXECUTE format('CREATE INDEX %I ON %s (organization_id, %s', 'ix_' || place.id || '_createdAt', place.records, rest);
    EXECUTE format('CREATE INDEX %I ON %s (organization_id, owner_user_id, %s AND owner_user_id IS NOT NULL',
      'ix_' || place.id || '_ownerUserId', place.records, rest);
    EXECUTE format('CREATE INDEX %I ON %s (organization_id, data_role_id, %s AND data_role_id IS NOT NULL',
      'ix_' || place.id || '_dataRoleId', place.records, rest);
    EXECUTE format('CREATE INDEX %I ON %s (organization_id, %s AND owner_user_id IS NULL AND data_role_id IS NULL',
      'ix_' || place.id || '_ofEverybody', place.records, rest);
  END LOOP;
END $$;
