-- Records refer to users, DataRoles and locations without foreign keys. Making or dropping a foreign key locks the table that
-- it leads to, and these three are every tenant's: a release of one application that made objects stopped those who signed in
-- to another one, for as long as the release took. What a foreign key promised is kept in three other ways:
--
--   * Whoever writes a reference has it checked in the same statement, by triggers of the object's own table (checkReference in
--     shared/modelling/physical-table.ts), under the same lock of the row that a foreign key takes.
--   * Users and locations are never deleted, nor DataRoles but by a release that takes the role out of the model. Nobody who
--     works for a caller has the right to delete one.
--   * A release that takes a role away counts the records that hold it once more when the role is deleted
--     (shared/modelling/part-steps.ts): who wrote one meanwhile was waited for, who comes later finds no role.

REVOKE DELETE ON portico.tenant_user, portico.data_role, portico.location FROM portico_app;

-- Is there such a row, and will it be there when this transaction commits? Runs with the rights of whoever writes, under
-- row-level security.
CREATE FUNCTION portico.reference_holds(target text, organization uuid, id uuid) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
  CASE target
    WHEN 'user' THEN
      PERFORM FROM portico.tenant_user t WHERE t.organization_id = organization AND t.user_id = id FOR KEY SHARE;
    WHEN 'dataRole' THEN
      PERFORM FROM portico.data_role t WHERE t.organization_id = organization AND t.data_role_id = id FOR KEY SHARE;
    WHEN 'location' THEN
      PERFORM FROM portico.location t WHERE t.organization_id = organization AND t.location_id = id FOR KEY SHARE;
  END CASE;
  RETURN FOUND;
END $$;
REVOKE ALL ON FUNCTION portico.reference_holds(text, uuid, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.reference_holds(text, uuid, uuid) TO portico_app;

-- Fails as a foreign key of the given name would.
CREATE FUNCTION portico.refuse_reference() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  RAISE foreign_key_violation USING
    MESSAGE = format('%I.%I: %s leads to nothing', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_ARGV[0]),
    SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = TG_ARGV[0];
END $$;
REVOKE ALL ON FUNCTION portico.refuse_reference() FROM PUBLIC;

-- The tables that there are.
DO $$
DECLARE
  found record;
  checks text;
BEGIN
  FOR found IN
    SELECT c.conrelid::regclass::text AS records, c.conname, a.attname,
      CASE a.attname WHEN 'owner_user_id' THEN 'record_ownerUserId' WHEN 'data_role_id' THEN 'record_dataRoleId'
        WHEN 'location_id' THEN 'record_locationId' ELSE c.conname END AS name,
      CASE c.confrelid WHEN 'portico.tenant_user'::regclass THEN 'user' WHEN 'portico.data_role'::regclass THEN 'dataRole'
        ELSE 'location' END AS target
    FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[2]
    WHERE c.contype = 'f' AND c.connamespace <> 'portico'::regnamespace
      AND c.confrelid IN ('portico.tenant_user'::regclass, 'portico.data_role'::regclass, 'portico.location'::regclass)
    ORDER BY c.oid
  LOOP
    EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', found.records, found.conname);
    checks := format('NEW.%1$I IS NOT NULL AND NOT portico.reference_holds(%2$L, NEW.organization_id, NEW.%1$I)) '
      || 'EXECUTE FUNCTION portico.refuse_reference(%3$L)', found.attname, found.target, found.name);
    EXECUTE format('CREATE TRIGGER %I AFTER INSERT ON %s FOR EACH ROW WHEN (%s', found.name, found.records, checks);
    EXECUTE format('CREATE TRIGGER %I AFTER UPDATE OF %3$I ON %2$s FOR EACH ROW WHEN (NEW.%3$I IS DISTINCT FROM OLD.%3$I AND %4$s',
      found.name || '_changed', found.records, found.attname, checks);
  END LOOP;
END $$;
