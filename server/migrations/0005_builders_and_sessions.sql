-- What people do through the API instead of the demo: builders bound to what they work on, sessions of users on the tenant
-- host, the last use of credentials, and audit entries from inside an organisation.

-- Sessions of tenant users are credentials that travel in a cookie.
ALTER TABLE portico.credential DROP CONSTRAINT credential_kind_check, DROP CONSTRAINT credential_check;
ALTER TABLE portico.credential
  ADD CONSTRAINT credential_kind CHECK (kind IN ('live', 'draft', 'dat', 'drt', 'ses')),
  ADD CONSTRAINT credential_user CHECK ((kind IN ('dat', 'drt', 'ses')) = (user_id IS NOT NULL)),
  ADD COLUMN last_used_at timestamptz(3),
  ADD COLUMN revision bigint NOT NULL DEFAULT 1,
  ADD COLUMN user_agent text NOT NULL DEFAULT '',
  ADD COLUMN address text NOT NULL DEFAULT '';

-- Answers that hold a secret shown once are kept sealed.
ALTER TABLE portico.idempotency_key ADD COLUMN sealed bytea;

-- Binds a transaction to a builder's account and, where the request names them, to an application and an organisation of
-- it. What is not the account's is missing, and nothing is bound to it. In one function, because the statements of a
-- transaction must see the account before the organisation is looked for.
CREATE FUNCTION portico.bind_builder(bound_account uuid, wanted_application uuid, wanted_organization uuid)
RETURNS json
LANGUAGE plpgsql SECURITY DEFINER SET search_path = ''
AS $$
DECLARE
  missing text;
BEGIN
  PERFORM pg_catalog.set_config('portico.account_id', bound_account::text, true);
  IF wanted_application IS NOT NULL AND NOT EXISTS (SELECT FROM portico.application a
      WHERE a.app_id = wanted_application AND a.account_id = bound_account) THEN
    missing := 'application';
  END IF;
  IF wanted_organization IS NOT NULL THEN
    IF EXISTS (SELECT FROM portico.organization o JOIN portico.application a ON a.app_id = o.app_id
        WHERE o.organization_id = wanted_organization AND a.account_id = bound_account) THEN
      PERFORM pg_catalog.set_config('portico.organization_id', wanted_organization::text, true);
    ELSE
      missing := 'organization';
    END IF;
  END IF;
  RETURN pg_catalog.json_build_object('missing', missing,
    'epoch', (SELECT e.value::text FROM portico.epoch e WHERE e.scope_id = bound_account));
END $$;
REVOKE ALL ON FUNCTION portico.bind_builder(uuid, uuid, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.bind_builder(uuid, uuid, uuid) TO portico_app;

-- Whose host is it? By slug, or by a domain of the organisation's own.
CREATE FUNCTION portico.find_organization_of_host(wanted_slug text, wanted_domain text)
RETURNS TABLE (organization_id uuid, app_id uuid, name text, slug text, status text, archived boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = ''
BEGIN ATOMIC
  SELECT o.organization_id, o.app_id, o.name, o.slug, o.status, a.archived_at IS NOT NULL
  FROM portico.organization o JOIN portico.application a ON a.app_id = o.app_id
  WHERE o.slug = wanted_slug OR o.custom_domain = wanted_domain;
END;
REVOKE ALL ON FUNCTION portico.find_organization_of_host(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.find_organization_of_host(text, text) TO portico_app;

-- When credentials were last used, for all of them at once: written every few seconds, not with each request.
CREATE FUNCTION portico.note_uses(uses jsonb) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = ''
BEGIN ATOMIC
  UPDATE portico.credential c SET last_used_at = u.used_at
    FROM jsonb_to_recordset(uses) AS u (key_id text, used_at timestamptz)
    WHERE c.key_id = u.key_id AND (c.last_used_at IS NULL OR c.last_used_at < u.used_at);
  UPDATE portico.builder_session s SET last_used_at = u.used_at
    FROM jsonb_to_recordset(uses) AS u (key_id text, used_at timestamptz)
    WHERE s.key_id = u.key_id AND (s.last_used_at IS NULL OR s.last_used_at < u.used_at);
END;
REVOKE ALL ON FUNCTION portico.note_uses(jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.note_uses(jsonb) TO portico_system;

-- An entry about something that was done inside an organisation by those who work there. They may not read the audit log
-- and do not know the account; the row still belongs to it.
CREATE FUNCTION portico.audit_in_organization(entry jsonb) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = ''
BEGIN ATOMIC
  INSERT INTO portico.audit_entry (account_id, entry_id, occurred_at, actor_kind, actor_id, action, target_type, target_id,
    app_id, target_organization_id, before, after, correlation_id)
  SELECT a.account_id, e.entry_id, e.occurred_at, e.actor_kind, e.actor_id, e.action, e.target_type, e.target_id,
    a.app_id, o.organization_id, e.before, e.after, e.correlation_id
  FROM jsonb_to_record(entry) AS e (entry_id uuid, occurred_at timestamptz, actor_kind text, actor_id text, action text,
    target_type text, target_id text, before jsonb, after jsonb, correlation_id uuid)
  CROSS JOIN portico.organization o JOIN portico.application a ON a.app_id = o.app_id
  WHERE o.organization_id = portico.current_organization();
END;
REVOKE ALL ON FUNCTION portico.audit_in_organization(jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.audit_in_organization(jsonb) TO portico_app;

-- Credentials of an archived application open nothing, and who they belong to learns why.
DROP FUNCTION portico.find_credential(text);
CREATE FUNCTION portico.find_credential(wanted text)
RETURNS TABLE (
  key_id text, kind text, app_id uuid, application_archived boolean, organization_id uuid, organization_name text,
  organization_slug text, organization_status text, secret_hash bytea, previous_secret_hash bytea,
  previous_expires_at timestamptz, scopes text[], has_envelope boolean, expires_at timestamptz, revoked_at timestamptz,
  user_id uuid, display_name text, email text, user_status text, user_type_key text, is_owner boolean,
  data_roles json, all_locations boolean, location_ids uuid[], organization_epoch bigint, application_epoch bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = ''
BEGIN ATOMIC
  SELECT c.key_id, c.kind, c.app_id, a.archived_at IS NOT NULL, c.organization_id, o.name, o.slug, o.status, c.secret_hash,
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
  JOIN portico.application a ON a.app_id = c.app_id
  LEFT JOIN portico.tenant_user u ON u.organization_id = c.organization_id AND u.user_id = c.user_id
  LEFT JOIN portico.membership m ON m.organization_id = c.organization_id AND m.user_id = c.user_id
  WHERE c.key_id = wanted;
END;
REVOKE ALL ON FUNCTION portico.find_credential(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.find_credential(text) TO portico_app;
