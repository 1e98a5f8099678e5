-- Customer organisations, users and invitations as lists, and one open invitation for an address.

CREATE INDEX organization_name ON portico.organization (app_id, lower(name), organization_id);
CREATE INDEX tenant_user_name ON portico.tenant_user (organization_id, lower(display_name), user_id);

-- A new invitation takes the place of the one before. The index holds it for those who invite at the same time.
CREATE UNIQUE INDEX invitation_pending ON portico.invitation (organization_id, lower(email))
  WHERE accepted_at IS NULL AND revoked_at IS NULL;
