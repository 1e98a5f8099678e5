-- The keys that secrets are sealed with (shared/secrets), each wrapped under a key of the key-management port. The one with
-- the highest number seals, all of them open. Nobody but the owner reads or writes them, and none is ever deleted: what was
-- sealed with it would be lost.
CREATE TABLE portico.data_key (
  data_key_id integer PRIMARY KEY CHECK (data_key_id > 0),
  wrapped bytea NOT NULL,
  -- The key that it is wrapped under.
  key_id text NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  wrapped_at timestamptz(3) NOT NULL DEFAULT now()
);
