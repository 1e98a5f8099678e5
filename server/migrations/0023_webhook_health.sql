-- Whoever enables a subscription begins with a clean record of its receiver.
GRANT DELETE ON portico.webhook_health TO portico_app;
