-- Resending what a receiver missed: not only deliveries that failed, also events for which there never was one, because the
-- subscription was disabled or did not exist yet.

-- Deliveries of an event, for its list and to find what was missed.
CREATE INDEX webhook_queue_event ON portico.webhook_queue (organization_id, event_id);

-- Lifecycle events, over all organisations of an application.
CREATE INDEX event_lifecycle ON portico.event (app_id, position)
  WHERE subject_type IN ('organization', 'user', 'membership', 'invitation');

-- Events that a subscription of the bound organisation asks for, by position, and whether there is a delivery of each. Runs
-- as the owner, because events of a subscription with the scope app belong to other organisations; what of each its
-- credential may know is decided by the service.
CREATE FUNCTION portico.events_for_subscription(wanted uuid, since timestamptz, until timestamptz, after_position bigint, most integer)
RETURNS TABLE ("position" bigint, organization_id uuid, event_id uuid, app_id uuid, event_key text, event_version text,
  subject_type text, actor_kind text, actor_id text, object_id uuid, owner_user_id uuid, data_role_id uuid,
  location_id uuid, data json, missed boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = ''
BEGIN ATOMIC
  WITH s AS (
    SELECT w.organization_id, w.app_id, w.scope, w.events FROM portico.webhook_subscription w
    WHERE w.organization_id = (SELECT portico.current_organization()) AND w.subscription_id = wanted),
  asked AS (
    SELECT e.*, s.organization_id AS subscriber_id, s.events FROM s JOIN portico.event e ON e.organization_id = s.organization_id
    WHERE s.scope = 'account' AND e.position > after_position
      AND e.event_id >= portico.uuid_at(since) AND e.event_id < portico.uuid_at(until)
    UNION ALL
    SELECT e.*, s.organization_id, s.events FROM s JOIN portico.event e ON e.app_id = s.app_id
    WHERE s.scope = 'app' AND e.subject_type IN ('organization', 'user', 'membership', 'invitation') AND e.position > after_position
      AND e.event_id >= portico.uuid_at(since) AND e.event_id < portico.uuid_at(until))
  SELECT a.position, a.organization_id, a.event_id, a.app_id, a.event_key, a.event_version, a.subject_type, a.actor_kind,
    a.actor_id, a.object_id, a.owner_user_id, a.data_role_id, a.location_id,
    CASE WHEN a.subject_type = 'relationship' THEN a.data ELSE '{}'::json END,
    NOT EXISTS (SELECT FROM portico.webhook_queue q
        WHERE q.organization_id = a.subscriber_id AND q.event_id = a.event_id AND q.subscription_id = wanted)
      AND NOT EXISTS (SELECT FROM portico.webhook_delivery d
        WHERE d.organization_id = a.subscriber_id AND d.event_id = a.event_id AND d.subscription_id = wanted)
  FROM asked a
  WHERE a.subscription_id IS NULL
    AND a.events @> pg_catalog.jsonb_build_array(pg_catalog.jsonb_build_object('eventKey', a.event_key, 'eventVersion', a.event_version))
  ORDER BY a.position LIMIT most;
END;
REVOKE ALL ON FUNCTION portico.events_for_subscription(uuid, timestamptz, timestamptz, bigint, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION portico.events_for_subscription(uuid, timestamptz, timestamptz, bigint, integer) TO portico_app;

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['event', 'webhook_subscription', 'webhook_queue', 'webhook_delivery']
  LOOP
    EXECUTE format('CREATE POLICY owner ON portico.%I TO portico_owner USING (true)', name);
  END LOOP;
END $$;
