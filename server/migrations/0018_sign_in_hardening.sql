-- What a review of accounts, mail and sign-in asked for: links that end with what they were for, secrets of people that are
-- nobody else's in the database either, and limits on mail.

-- Ends the sessions of a person in all of their accounts, but for one that they keep, and every link for a forgotten
-- password: who changes a password because somebody else got hold of the mailbox must not be undone by a link from it.
CREATE OR REPLACE FUNCTION portico.end_builder_sessions(person uuid, kept text, at timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = ''
AS $$
BEGIN
  UPDATE portico.builder_password_reset r SET used_at = at WHERE r.builder_id = person AND r.used_at IS NULL;
  UPDATE portico.builder_session s SET revoked_at = at
    WHERE s.builder_id = person AND s.revoked_at IS NULL AND s.key_id IS DISTINCT FROM kept;
  PERFORM portico.bump_epoch(m.account_id) FROM (SELECT account_id FROM portico.account_member
    WHERE builder_id = person ORDER BY account_id) m;
END $$;

-- A builder's transaction is bound to the person as well as to the account: members of an account see each other, and the
-- passwords and second factors of none but their own.
CREATE FUNCTION portico.current_builder() RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
RETURN nullif(current_setting('portico.builder_id', true), '')::uuid;

DROP FUNCTION portico.bind_builder(uuid, uuid, uuid);
CREATE FUNCTION portico.bind_builder(bound_account uuid, bound_builder uuid, wanted_application uuid, wanted_organization uuid)
RETURNS json
LANGUAGE plpgsql SECURITY DEFINER SET search_path = ''
AS $$
DECLARE
  missing text;
BEGIN
  PERFORM pg_catalog.set_config('portico.account_id', bound_account::text, true);
  PERFORM pg_catalog.set_config('portico.builder_id', bound_builder::text, true);
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
REVOKE ALL ON FUNCTION portico.bind_builder(uuid, uuid, uuid, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.bind_builder(uuid, uuid, uuid, uuid) TO portico_app;

CREATE OR REPLACE FUNCTION portico.bind_member(wanted_builder uuid, wanted_account uuid) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = ''
AS $$
DECLARE
  found_role text;
BEGIN
  SELECT m.role INTO found_role FROM portico.account_member m
    WHERE m.builder_id = wanted_builder AND m.account_id = wanted_account;
  IF found_role IS NOT NULL THEN
    PERFORM pg_catalog.set_config('portico.account_id', wanted_account::text, true);
    PERFORM pg_catalog.set_config('portico.builder_id', wanted_builder::text, true);
  END IF;
  RETURN found_role;
END $$;

-- The person that the transaction is bound to, whole. A view of the owner's, because what members may see of each other is a
-- matter of columns, and row-level security knows rows.
CREATE VIEW portico.own_builder WITH (security_barrier) AS
  SELECT builder_id, email, display_name, password_hash, totp_secret, totp_confirmed_at, totp_last_step
  FROM portico.builder WHERE builder_id = (SELECT portico.current_builder())
  WITH CHECK OPTION;
GRANT SELECT, UPDATE (display_name, password_hash, totp_secret, totp_confirmed_at, totp_last_step)
  ON portico.own_builder TO portico_app;

REVOKE SELECT, UPDATE ON portico.builder FROM portico_app;
GRANT SELECT (builder_id, email, display_name, totp_confirmed_at) ON portico.builder TO portico_app;
DROP POLICY member ON portico.builder_recovery_code;
CREATE POLICY own ON portico.builder_recovery_code TO portico_app
  USING (builder_id = (SELECT portico.current_builder()));

-- Who invited, so that their invitations go with their right to make them.
ALTER TABLE portico.account_invitation ADD COLUMN invited_by uuid REFERENCES portico.builder;
UPDATE portico.account_invitation i SET invited_by = e.actor_id::uuid FROM portico.audit_entry e
  WHERE e.account_id = i.account_id AND e.target_type = 'team_invitation' AND e.target_id = i.invitation_id::text
    AND e.action = 'team_invitation.created' AND e.actor_kind = 'builder';

-- Up to three links for a forgotten password work side by side: with one alone, whoever asks for another one in somebody's
-- name would take the link away that they are about to use.
ALTER TABLE portico.password_reset DROP CONSTRAINT password_reset_pkey;
DROP INDEX portico.password_reset_token;
ALTER TABLE portico.password_reset ADD PRIMARY KEY (organization_id, token_hash);
CREATE INDEX password_reset_user ON portico.password_reset (organization_id, user_id);

-- Names below localhost counted as verified in development, and were never served.
UPDATE portico.organization SET custom_domain_verified_at = NULL WHERE custom_domain LIKE '%.localhost';

-- The lower number is sent first, and nothing is sent whose link works no more.
ALTER TABLE portico.mail_message ADD COLUMN priority smallint NOT NULL DEFAULT 0, ADD COLUMN expires_at timestamptz(3);
DROP INDEX portico.mail_message_due;
CREATE INDEX mail_message_due ON portico.mail_message (priority, due_at) WHERE state IN ('queued', 'sending');

-- Mail of the last day, by what it is limited by. Keys are hashes: addresses are kept with the messages alone.
CREATE TABLE portico.mail_count (
  counter_key bytea NOT NULL,
  created_at timestamptz(3) NOT NULL,
  mail_id uuid NOT NULL,
  PRIMARY KEY (counter_key, created_at, mail_id)
);
CREATE INDEX mail_count_old ON portico.mail_count (created_at);
ALTER TABLE portico.mail_count ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY enqueue ON portico.mail_count TO portico_owner USING (true);
CREATE POLICY cleaner ON portico.mail_count TO portico_system USING (true);
GRANT SELECT, DELETE ON portico.mail_count TO portico_system;

-- The one way to put a message in. A transaction that is bound writes for what it is bound to; one that is bound to
-- nothing is a visitor's (a forgotten password), and the code has found out whose mail it is. Each limit says that there
-- are `most` messages of a purpose in so many seconds, per recipient, per account, or per recipient from one account. Where
-- one is reached, nothing is written and the answer says from when on there is room; else it is null.
DROP FUNCTION portico.enqueue_mail(uuid, uuid, uuid, text, text, bytea, timestamptz);
CREATE FUNCTION portico.enqueue_mail(message jsonb, content bytea, purpose text, limits jsonb) RETURNS timestamptz
LANGUAGE plpgsql SECURITY DEFINER SET search_path = ''
AS $$
DECLARE
  mail portico.mail_message := jsonb_populate_record(NULL::portico.mail_message, message);
  home uuid := coalesce(mail.account_id, (SELECT a.account_id FROM portico.organization o
    JOIN portico.application a ON a.app_id = o.app_id WHERE o.organization_id = mail.organization_id));
  keys jsonb := jsonb_build_object('recipient', jsonb_build_array(purpose, lower(mail.recipient)),
    'account', jsonb_build_array(purpose, home),
    'recipient of account', jsonb_build_array(purpose, home, lower(mail.recipient)));
  free_at timestamptz;
BEGIN
  IF num_nonnulls(portico.current_organization(), portico.current_account()) > 0
    AND (mail.organization_id = portico.current_organization()) IS NOT TRUE
    AND (mail.account_id = portico.current_account()) IS NOT TRUE
  THEN
    RAISE insufficient_privilege USING MESSAGE = 'mail for somebody that the transaction is not bound to';
  END IF;
  -- Who writes to one recipient is counted one after the other. Not who writes from one account: they may be many, and a few
  -- messages more than its limit do no harm.
  PERFORM pg_advisory_xact_lock(hashtextextended('mail to ' || lower(mail.recipient), 0));
  SELECT max(counted.created_at + l.seconds * interval '1 second') INTO free_at
    FROM jsonb_to_recordset(limits) AS l (per text, seconds integer, most integer)
    CROSS JOIN LATERAL (SELECT c.created_at FROM portico.mail_count c
      WHERE c.counter_key = sha256(convert_to((keys -> l.per)::text, 'UTF8'))
        AND c.created_at > mail.created_at - l.seconds * interval '1 second'
      ORDER BY c.created_at DESC OFFSET l.most - 1 LIMIT 1) counted;
  IF free_at IS NOT NULL THEN RETURN free_at; END IF;
  INSERT INTO portico.mail_count (counter_key, created_at, mail_id)
    SELECT DISTINCT sha256(convert_to((keys -> l.per)::text, 'UTF8')), mail.created_at, mail.mail_id
    FROM jsonb_to_recordset(limits) AS l (per text);
  INSERT INTO portico.mail_message (mail_id, organization_id, account_id, kind, recipient, sealed, due_at, created_at,
      priority, expires_at)
    VALUES (mail.mail_id, mail.organization_id, mail.account_id, mail.kind, mail.recipient, content, mail.created_at,
      mail.created_at, mail.priority, mail.expires_at);
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION portico.enqueue_mail(jsonb, bytea, text, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.enqueue_mail(jsonb, bytea, text, jsonb) TO portico_app;
