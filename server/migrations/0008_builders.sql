-- How builders sign in, and how they are kept from guessing: failures counted for all processes, second factors, one-time
-- tokens for forgotten passwords, and the functions that answer to one exact key before anybody is signed in.

-- Failures of signing in, by what they were counted for: an account, an address, the two together. Keys are hashes, so that
-- the addresses of people who do not exist here are not collected.
CREATE TABLE portico.sign_in_counter (
  counter_key bytea PRIMARY KEY,
  failures integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
  failed_at timestamptz(3),
  succeeded_at timestamptz(3)
) WITH (fillfactor = 50);
ALTER TABLE portico.sign_in_counter ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY throttle ON portico.sign_in_counter TO portico_system USING (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON portico.sign_in_counter TO portico_system;

ALTER TABLE portico.builder_session ADD COLUMN label text NOT NULL DEFAULT '';
CREATE INDEX account_invitation_pending ON portico.account_invitation (account_id, lower(email))
  WHERE accepted_at IS NULL AND revoked_at IS NULL;

-- Each stands in for one code of the second factor, once.
CREATE TABLE portico.builder_recovery_code (
  builder_id uuid NOT NULL REFERENCES portico.builder,
  code_hash bytea NOT NULL,
  PRIMARY KEY (builder_id, code_hash)
);

-- Links with which a forgotten password is replaced. Read and written by the functions below alone.
CREATE TABLE portico.builder_password_reset (
  token_hash bytea PRIMARY KEY,
  builder_id uuid NOT NULL REFERENCES portico.builder,
  created_at timestamptz(3) NOT NULL,
  expires_at timestamptz(3) NOT NULL,
  used_at timestamptz(3)
);
CREATE INDEX builder_password_reset_builder ON portico.builder_password_reset (builder_id);

-- People are seen by the accounts that they are members of; what belongs to a person alone names the person as well.
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['builder', 'builder_recovery_code', 'builder_password_reset']
  LOOP
    EXECUTE format('ALTER TABLE portico.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY owner ON portico.%I TO portico_owner USING (true)', name);
  END LOOP;
  FOREACH name IN ARRAY ARRAY['builder', 'builder_recovery_code']
  LOOP
    EXECUTE format('CREATE POLICY member ON portico.%I TO portico_app USING (builder_id IN (SELECT m.builder_id
      FROM portico.account_member m WHERE m.account_id = (SELECT portico.current_account())))', name);
  END LOOP;
END $$;
GRANT SELECT, UPDATE ON portico.builder TO portico_app;
GRANT SELECT, INSERT, DELETE ON portico.builder_recovery_code TO portico_app;

-- Binds a transaction of somebody who has just proven who they are to one of their accounts. Null: they are not in it.
CREATE FUNCTION portico.bind_member(wanted_builder uuid, wanted_account uuid) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = ''
AS $$
DECLARE
  found_role text;
BEGIN
  SELECT m.role INTO found_role FROM portico.account_member m
    WHERE m.builder_id = wanted_builder AND m.account_id = wanted_account;
  IF found_role IS NOT NULL THEN
    PERFORM pg_catalog.set_config('portico.account_id', wanted_account::text, true);
  END IF;
  RETURN found_role;
END $$;

-- What a password and a code are held against, and where the person is at home, the longest first.
CREATE FUNCTION portico.find_builder_by_email(wanted text)
RETURNS TABLE (builder_id uuid, email text, display_name text, password_hash text, totp_secret bytea,
  totp_confirmed_at timestamptz, totp_last_step bigint, accounts json)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = ''
BEGIN ATOMIC
  SELECT b.builder_id, b.email, b.display_name, b.password_hash, b.totp_secret, b.totp_confirmed_at, b.totp_last_step,
    (SELECT coalesce(json_agg(json_build_object('accountId', a.account_id, 'name', a.name, 'role', m.role)
        ORDER BY m.created_at, a.account_id), '[]')
       FROM portico.account_member m JOIN portico.account a ON a.account_id = m.account_id
      WHERE m.builder_id = b.builder_id)
  FROM portico.builder b WHERE lower(b.email) = lower(wanted);
END;

-- The invitation that a link belongs to, while it can be accepted.
CREATE FUNCTION portico.find_account_invitation(wanted bytea, at timestamptz)
RETURNS TABLE (account_id uuid, invitation_id uuid, email text, role text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = ''
BEGIN ATOMIC
  SELECT i.account_id, i.invitation_id, i.email, i.role FROM portico.account_invitation i
  WHERE i.token_hash = wanted AND i.accepted_at IS NULL AND i.revoked_at IS NULL AND i.expires_at > at;
END;

-- Makes a member of whoever holds the link, once, and binds the transaction to the account. A person who is not known yet is
-- made with what `newcomer` says of them. Returns nothing when the link was used, revoked or late, or belongs to another
-- person; whoever asked must roll back then.
CREATE FUNCTION portico.accept_account_invitation(wanted bytea, person uuid, newcomer jsonb, at timestamptz)
RETURNS TABLE (account_id uuid, invitation_id uuid, role text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = ''
AS $$
DECLARE
  accepted portico.account_invitation;
BEGIN
  UPDATE portico.account_invitation i SET accepted_at = at
    WHERE i.token_hash = wanted AND i.accepted_at IS NULL AND i.revoked_at IS NULL AND i.expires_at > at
    RETURNING i.* INTO accepted;
  IF accepted IS NULL THEN RETURN; END IF;
  IF newcomer IS NOT NULL THEN
    INSERT INTO portico.builder (builder_id, email, display_name, password_hash, created_at)
    VALUES (person, accepted.email, newcomer ->> 'displayName', newcomer ->> 'passwordHash', at)
    ON CONFLICT DO NOTHING;
    -- Somebody has become known in the meantime, and has a password to prove.
    IF NOT FOUND THEN RETURN; END IF;
  ELSIF NOT EXISTS (SELECT FROM portico.builder b WHERE b.builder_id = person AND lower(b.email) = lower(accepted.email)) THEN
    RETURN;
  END IF;
  INSERT INTO portico.account_member (account_id, builder_id, role, created_at)
    VALUES (accepted.account_id, person, accepted.role, at) ON CONFLICT DO NOTHING;
  PERFORM portico.bump_epoch(accepted.account_id);
  PERFORM portico.bind_member(person, accepted.account_id);
  RETURN QUERY SELECT accepted.account_id, accepted.invitation_id,
    (SELECT m.role FROM portico.account_member m WHERE m.account_id = accepted.account_id AND m.builder_id = person);
END $$;

-- Keeps the hash of a new link for a forgotten password. Three of them an hour: more are somebody who fills a mailbox.
-- Returns to whom it may be sent, or nothing.
CREATE FUNCTION portico.request_password_reset(wanted_email text, new_hash bytea, at timestamptz, until timestamptz)
RETURNS TABLE (builder_id uuid, account_id uuid, email text, display_name text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = ''
AS $$
DECLARE
  person portico.builder;
BEGIN
  -- Locked, so that those who ask at once are counted one after the other.
  SELECT b.* INTO person FROM portico.builder b WHERE lower(b.email) = lower(wanted_email) FOR NO KEY UPDATE;
  IF person IS NULL OR (SELECT count(*) FROM portico.builder_password_reset r
      WHERE r.builder_id = person.builder_id AND r.created_at > at - interval '1 hour') >= 3 THEN
    RETURN;
  END IF;
  RETURN QUERY
    WITH home AS (SELECT m.account_id FROM portico.account_member m WHERE m.builder_id = person.builder_id
      ORDER BY m.created_at, m.account_id LIMIT 1),
    kept AS (INSERT INTO portico.builder_password_reset (token_hash, builder_id, created_at, expires_at)
      SELECT new_hash, person.builder_id, at, until FROM home RETURNING 1)
    SELECT person.builder_id, home.account_id, person.email, person.display_name FROM home, kept;
END $$;

-- Asked before a new password is hashed, which takes 25 ms of a core.
CREATE FUNCTION portico.holds_password_reset(wanted bytea, at timestamptz) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = ''
BEGIN ATOMIC
  SELECT EXISTS (SELECT FROM portico.builder_password_reset r
    WHERE r.token_hash = wanted AND r.used_at IS NULL AND r.expires_at > at);
END;

-- Replaces the password of whoever holds the link, once: every other link and every session of theirs ends with it. Returns
-- the accounts of which they are members, or nothing when the link was used, replaced or late.
CREATE FUNCTION portico.complete_password_reset(wanted bytea, new_password_hash text, at timestamptz)
RETURNS TABLE (builder_id uuid, account_id uuid, email text, display_name text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = ''
AS $$
DECLARE
  person uuid;
BEGIN
  UPDATE portico.builder_password_reset r SET used_at = at
    WHERE r.token_hash = wanted AND r.used_at IS NULL AND r.expires_at > at RETURNING r.builder_id INTO person;
  IF person IS NULL THEN RETURN; END IF;
  UPDATE portico.builder_password_reset r SET used_at = at WHERE r.builder_id = person AND r.used_at IS NULL;
  UPDATE portico.builder b SET password_hash = new_password_hash WHERE b.builder_id = person;
  PERFORM portico.end_builder_sessions(person, NULL, at);
  RETURN QUERY SELECT m.builder_id, m.account_id, b.email, b.display_name
    FROM portico.account_member m JOIN portico.builder b ON b.builder_id = m.builder_id
    WHERE m.builder_id = person ORDER BY m.created_at, m.account_id;
END $$;

-- Ends the sessions of a person in all of their accounts, but for one that they keep.
CREATE FUNCTION portico.end_builder_sessions(person uuid, kept text, at timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = ''
AS $$
BEGIN
  UPDATE portico.builder_session s SET revoked_at = at
    WHERE s.builder_id = person AND s.revoked_at IS NULL AND s.key_id IS DISTINCT FROM kept;
  PERFORM portico.bump_epoch(m.account_id) FROM (SELECT account_id FROM portico.account_member
    WHERE builder_id = person ORDER BY account_id) m;
END $$;

-- The same for the person whose session `kept` is; it must be one in the account that the transaction is bound to.
CREATE FUNCTION portico.end_other_sessions(kept text, at timestamptz) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = ''
BEGIN ATOMIC
  SELECT portico.end_builder_sessions(s.builder_id, kept, at) FROM portico.builder_session s
    WHERE s.key_id = kept AND s.account_id = portico.current_account();
END;

-- A builder on their own: the person, the account and the membership as its owner.
CREATE FUNCTION portico.insert_account(account jsonb, at timestamptz) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = ''
BEGIN ATOMIC
  INSERT INTO portico.builder (builder_id, email, display_name, password_hash, created_at)
    VALUES ((account ->> 'builderId')::uuid, account ->> 'email', account ->> 'displayName', account ->> 'passwordHash', at);
  INSERT INTO portico.account (account_id, name, billing_email, created_at)
    VALUES ((account ->> 'accountId')::uuid, account ->> 'name', account ->> 'email', at);
  INSERT INTO portico.account_member (account_id, builder_id, role, created_at)
    VALUES ((account ->> 'accountId')::uuid, (account ->> 'builderId')::uuid, 'owner', at);
  SELECT portico.bump_epoch((account ->> 'accountId')::uuid);
END;

-- What the service knows of itself only for a while: the link with which the first account is made.
ALTER TABLE portico.installation ADD COLUMN expires_at timestamptz(3);

-- Is this the link that the terminal showed, and is there no account yet?
CREATE FUNCTION portico.opens_first_account(wanted bytea, at timestamptz) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = ''
BEGIN ATOMIC
  SELECT EXISTS (SELECT FROM portico.installation i
      WHERE i.name = 'first account' AND i.value = wanted AND i.expires_at > at)
    AND NOT EXISTS (SELECT FROM portico.account);
END;

-- Makes the first account for whoever holds that link, once, and binds the transaction to it.
CREATE FUNCTION portico.accept_first_account(wanted bytea, account jsonb, at timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = ''
AS $$
BEGIN
  -- Of two who hold it one finds it.
  DELETE FROM portico.installation i WHERE i.name = 'first account' AND i.value = wanted AND i.expires_at > at;
  IF NOT FOUND OR EXISTS (SELECT FROM portico.account) THEN RETURN false; END IF;
  PERFORM portico.insert_account(account, at);
  PERFORM portico.bind_member((account ->> 'builderId')::uuid, (account ->> 'accountId')::uuid);
  RETURN true;
END $$;

-- What nobody can use any more goes after 30 days: sessions, invitations and links. Runs hourly, as the owner.
CREATE FUNCTION portico.remove_spent_sign_ins(at timestamptz) RETURNS void
LANGUAGE sql SET search_path = ''
BEGIN ATOMIC
  DELETE FROM portico.builder_session s
    WHERE s.expires_at < at - interval '30 days' OR s.revoked_at < at - interval '30 days';
  DELETE FROM portico.account_invitation i WHERE i.expires_at < at - interval '30 days';
  DELETE FROM portico.builder_password_reset r WHERE r.expires_at < at - interval '30 days';
END;

REVOKE ALL ON FUNCTION portico.bind_member(uuid, uuid), portico.find_builder_by_email(text),
  portico.find_account_invitation(bytea, timestamptz), portico.accept_account_invitation(bytea, uuid, jsonb, timestamptz),
  portico.request_password_reset(text, bytea, timestamptz, timestamptz), portico.holds_password_reset(bytea, timestamptz),
  portico.complete_password_reset(bytea, text, timestamptz), portico.end_builder_sessions(uuid, text, timestamptz),
  portico.end_other_sessions(text, timestamptz), portico.insert_account(jsonb, timestamptz),
  portico.opens_first_account(bytea, timestamptz), portico.accept_first_account(bytea, jsonb, timestamptz),
  portico.remove_spent_sign_ins(timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.bind_member(uuid, uuid), portico.find_builder_by_email(text),
  portico.find_account_invitation(bytea, timestamptz), portico.accept_account_invitation(bytea, uuid, jsonb, timestamptz),
  portico.request_password_reset(text, bytea, timestamptz, timestamptz), portico.holds_password_reset(bytea, timestamptz),
  portico.complete_password_reset(bytea, text, timestamptz), portico.end_other_sessions(text, timestamptz),
  portico.opens_first_account(bytea, timestamptz), portico.accept_first_account(bytea, jsonb, timestamptz) TO portico_app;
