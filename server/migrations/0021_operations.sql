-- Long-running work: imports, exports and whatever else answers 202 (shared/operations). The row is the job: it is claimed for a
-- while, under a number that each claim raises, and whoever holds an older number writes nothing more. What it has come to, and
-- what it has written, change in one transaction.
CREATE TABLE portico.operation (
  organization_id uuid NOT NULL REFERENCES portico.organization,
  operation_id uuid NOT NULL,
  app_id uuid NOT NULL REFERENCES portico.application,
  type text NOT NULL,
  -- Who began it, by which credential, and the scope that this took. The rights are asked for again at each step.
  key_id text NOT NULL,
  actor_kind text NOT NULL,
  actor_id text NOT NULL,
  scope text NOT NULL,
  correlation_id uuid NOT NULL,
  input json NOT NULL,
  -- `receiving`: its file is still on its way, and nobody knows of it.
  status text NOT NULL CHECK (status IN
    ('receiving', 'queued', 'running', 'cancelling', 'succeeded', 'partially_succeeded', 'failed', 'cancelled')),
  -- Raised by each claim.
  fence integer NOT NULL DEFAULT 0,
  -- Claims since it last came further.
  attempts integer NOT NULL DEFAULT 0,
  -- When to take it up. While a worker has it: when another one may take it over.
  due_at timestamptz(3) NOT NULL,
  -- Where the next step begins.
  checkpoint json,
  total bigint,
  processed bigint NOT NULL DEFAULT 0,
  succeeded bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0,
  result json,
  error json,
  -- What its files take, before compression.
  stored_bytes bigint NOT NULL DEFAULT 0,
  created_at timestamptz(3) NOT NULL,
  started_at timestamptz(3),
  completed_at timestamptz(3),
  expires_at timestamptz(3),
  PRIMARY KEY (organization_id, operation_id),
  CHECK ((status IN ('succeeded', 'partially_succeeded', 'failed', 'cancelled')) = (completed_at IS NOT NULL)),
  CHECK ((completed_at IS NULL) = (expires_at IS NULL))
);
CREATE INDEX operation_active ON portico.operation (due_at) WHERE completed_at IS NULL;
CREATE INDEX operation_expiring ON portico.operation (expires_at) WHERE expires_at IS NOT NULL;

-- Its files: what was uploaded, what it wrote, and the rows that it could not take. A chunk is at most 1 MiB before compression.
CREATE TABLE portico.operation_chunk (
  organization_id uuid NOT NULL,
  operation_id uuid NOT NULL,
  file text NOT NULL CHECK (file IN ('upload', 'result', 'errors')),
  number integer NOT NULL,
  size_bytes integer NOT NULL CHECK (size_bytes BETWEEN 1 AND 1048576),
  content bytea NOT NULL,
  PRIMARY KEY (organization_id, operation_id, file, number),
  FOREIGN KEY (organization_id, operation_id) REFERENCES portico.operation ON DELETE CASCADE
);
-- Compressed already.
ALTER TABLE portico.operation_chunk ALTER COLUMN content SET STORAGE EXTERNAL;

ALTER TABLE portico.operation ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE portico.operation_chunk ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON portico.operation USING (organization_id = (SELECT portico.current_organization()));
CREATE POLICY tenant ON portico.operation_chunk USING (organization_id = (SELECT portico.current_organization()));
GRANT SELECT, INSERT, UPDATE, DELETE ON portico.operation TO portico_app;
GRANT SELECT, INSERT, DELETE ON portico.operation_chunk TO portico_app;

-- Claiming, and removing what has expired, across organisations. It never sees what is in a file.
CREATE POLICY worker ON portico.operation TO portico_system USING (true);
CREATE POLICY worker ON portico.operation_chunk TO portico_system USING (true);
GRANT SELECT, UPDATE, DELETE ON portico.operation TO portico_system;
GRANT SELECT (organization_id, operation_id, file, number), DELETE ON portico.operation_chunk TO portico_system;
