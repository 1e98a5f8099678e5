-- Mail that waits to be sent: written in the transaction of the change that causes it, sent after the commit
-- (shared/mail). What it says is sealed, because it holds one-time tokens, and erased when it was sent or given up; the
-- rest of the row is kept for 30 days, so that somebody can tell whether a message ever left.
CREATE TABLE portico.mail_message (
  mail_id uuid PRIMARY KEY,
  organization_id uuid REFERENCES portico.organization,
  account_id uuid REFERENCES portico.account,
  kind text NOT NULL,
  recipient text NOT NULL,
  -- Name of the recipient, subject, text and HTML (shared/secrets).
  sealed bytea,
  state text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'sending', 'sent', 'failed')),
  attempts integer NOT NULL DEFAULT 0,
  -- When to try next. While a worker has it: when another one may take it over.
  due_at timestamptz(3) NOT NULL,
  last_error text,
  created_at timestamptz(3) NOT NULL,
  finished_at timestamptz(3),
  CHECK (num_nonnulls(organization_id, account_id) = 1),
  CHECK ((state IN ('sent', 'failed')) = (sealed IS NULL)),
  CHECK ((state IN ('sent', 'failed')) = (finished_at IS NOT NULL))
);
CREATE INDEX mail_message_due ON portico.mail_message (due_at) WHERE state IN ('queued', 'sending');
CREATE INDEX mail_message_finished ON portico.mail_message (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX mail_message_organization ON portico.mail_message (organization_id) WHERE organization_id IS NOT NULL;
CREATE INDEX mail_message_account ON portico.mail_message (account_id) WHERE account_id IS NOT NULL;

-- Read and changed by the worker alone. The owner may only put messages in, for the function below.
ALTER TABLE portico.mail_message ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY worker ON portico.mail_message TO portico_system USING (true);
CREATE POLICY enqueue ON portico.mail_message FOR INSERT TO portico_owner WITH CHECK (true);
GRANT SELECT, UPDATE, DELETE ON portico.mail_message TO portico_system;

-- The one way to put a message in. A transaction that is bound writes for what it is bound to; one that is bound to
-- nothing is a visitor's (a forgotten password), and the code has found out whose mail it is.
CREATE FUNCTION portico.enqueue_mail(id uuid, of_organization uuid, of_account uuid, what text, towards text, content bytea,
  written_at timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = ''
AS $$
BEGIN
  IF num_nonnulls(portico.current_organization(), portico.current_account()) > 0
    AND (of_organization = portico.current_organization()) IS NOT TRUE
    AND (of_account = portico.current_account()) IS NOT TRUE
  THEN
    RAISE insufficient_privilege USING MESSAGE = 'mail for somebody that the transaction is not bound to';
  END IF;
  INSERT INTO portico.mail_message (mail_id, organization_id, account_id, kind, recipient, sealed, due_at, created_at)
  VALUES (id, of_organization, of_account, what, towards, content, written_at, written_at);
END $$;
REVOKE ALL ON FUNCTION portico.enqueue_mail(uuid, uuid, uuid, text, text, bytea, timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.enqueue_mail(uuid, uuid, uuid, text, text, bytea, timestamptz) TO portico_app;
