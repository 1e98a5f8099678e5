-- Tenant users who have forgotten their password, and what is asked of credentials by user.

-- One outstanding reset for each user: asking again replaces it, and using it or changing the password removes it. Only a
-- hash of the token is kept.
CREATE TABLE portico.password_reset (
  organization_id uuid NOT NULL,
  user_id uuid NOT NULL,
  token_hash bytea NOT NULL,
  created_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3) NOT NULL,
  PRIMARY KEY (organization_id, user_id),
  FOREIGN KEY (organization_id, user_id) REFERENCES portico.tenant_user
);
CREATE UNIQUE INDEX password_reset_token ON portico.password_reset (organization_id, token_hash);

ALTER TABLE portico.password_reset ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON portico.password_reset USING (organization_id = (SELECT portico.current_organization()));
GRANT SELECT, INSERT, UPDATE, DELETE ON portico.password_reset TO portico_app;

-- The sessions of a user, which end together when the password changes.
CREATE INDEX credential_user ON portico.credential (organization_id, user_id) WHERE user_id IS NOT NULL;
