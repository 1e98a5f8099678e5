-- Which of these records of one object hold the words, in the order in which they were given, until there are as many as asked
-- for, or a few more. Beside search_records, which asks the index for all that hold them: a page is soon full of a word that many
-- records hold, when they are gone through in the order of the page. They are found by their keys, so nothing here depends on
-- how many hold the words, nor on how long the words are.
CREATE FUNCTION portico.search_among(
  organization uuid, object uuid, records uuid[], patterns text[], digits text, tags text, enough integer
) RETURNS uuid[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = '' SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  q portico.search_question;
  -- Many keys at once: one pass through the index of keys is quicker than looking each up.
  many CONSTANT integer := 2000;
  statement text;
  held uuid[];
  found uuid[] := '{}';
BEGIN
  IF organization IS DISTINCT FROM portico.current_organization() THEN
    RETURN found;
  END IF;
  q.organization := organization;
  q.objects := ARRAY[object];
  q.tags := ARRAY[tags];
  q.patterns := patterns;
  q.digits := digits;
  statement := 'WITH holding AS MATERIALIZED (SELECT d.record_id FROM portico.' || portico.search_part(organization) || ' d
      WHERE d.organization_id = $1 AND d.record_id = ANY ($11) AND d.object_id = ($2)[1]' || portico.search_words_condition(q) || ')
    SELECT array_agg(r.record_id ORDER BY r.ordinal)
    FROM unnest($11) WITH ORDINALITY AS r (record_id, ordinal) JOIN holding USING (record_id)';
  FOR n IN 1 .. coalesce(cardinality(records), 0) BY many LOOP
    EXECUTE statement INTO held
      USING q.organization, q.objects, q.audience, q.user_id, q.data_role_ids, q.location_ids, q.only_location,
        q.patterns, q.digits, q.tags, records[n : n + many - 1];
    found := found || held;
    EXIT WHEN cardinality(found) >= enough;
  END LOOP;
  RETURN found;
END $$;
REVOKE ALL ON FUNCTION portico.search_among(uuid, uuid, uuid[], text[], text, text, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.search_among(uuid, uuid, uuid[], text[], text, text, integer) TO portico_app;
