-- Domains of organisations count from when they were verified in the DNS. Anybody may ask for a name, one organisation has
-- it; a domain from before this was never verified, so it has to be now.

ALTER TABLE portico.organization
  DROP CONSTRAINT organization_custom_domain_key,
  ADD COLUMN custom_domain_verified_at timestamptz(3),
  ADD CONSTRAINT organization_verified_domain CHECK (custom_domain_verified_at IS NULL OR custom_domain IS NOT NULL);

CREATE UNIQUE INDEX organization_verified_domain_key ON portico.organization (custom_domain)
  WHERE custom_domain_verified_at IS NOT NULL;

-- Whose host is it? By slug, or by a verified domain of the organisation's own.
CREATE OR REPLACE FUNCTION portico.find_organization_of_host(wanted_slug text, wanted_domain text)
RETURNS TABLE (organization_id uuid, app_id uuid, name text, slug text, status text, archived boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = ''
BEGIN ATOMIC
  SELECT o.organization_id, o.app_id, o.name, o.slug, o.status, a.archived_at IS NOT NULL
  FROM portico.organization o JOIN portico.application a ON a.app_id = o.app_id
  WHERE o.slug = wanted_slug OR (o.custom_domain = wanted_domain AND o.custom_domain_verified_at IS NOT NULL);
END;
