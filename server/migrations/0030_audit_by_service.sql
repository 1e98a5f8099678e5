-- An entry about what the service did in an organization by itself, in the transaction of what it did.
CREATE FUNCTION portico.audit_by_service(organization uuid, entry jsonb) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = ''
BEGIN ATOMIC
  INSERT INTO portico.audit_entry (account_id, entry_id, occurred_at, actor_kind, actor_id, action, target_type, target_id,
    app_id, target_organization_id, before, after, correlation_id)
  SELECT a.account_id, e.entry_id, e.occurred_at, 'system', e.actor_id, e.action, e.target_type, e.target_id,
    a.app_id, o.organization_id, e.before, e.after, e.correlation_id
  FROM jsonb_to_record(entry) AS e (entry_id uuid, occurred_at timestamptz, actor_id text, action text,
    target_type text, target_id text, before jsonb, after jsonb, correlation_id uuid)
  CROSS JOIN portico.organization o JOIN portico.application a ON a.app_id = o.app_id
  WHERE o.organization_id = organization;
END;
REVOKE ALL ON FUNCTION portico.audit_by_service(uuid, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.audit_by_service(uuid, jsonb) TO portico_system;
