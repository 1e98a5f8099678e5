-- Which worker has a delivery. One that has all that is leased of a subscription may lease some ahead of what it sends at once,
-- so that a fast receiver does not wait for the database between its deliveries; workers that share one may not.
ALTER TABLE portico.webhook_queue ADD COLUMN leased_by uuid;
