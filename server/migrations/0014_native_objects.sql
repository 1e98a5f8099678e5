-- Native objects: what every application has beside its own objects (shared/modelling/native-objects.ts).

-- Set by the service, refused from clients.
ALTER TABLE portico.field_definition ADD COLUMN read_only boolean NOT NULL DEFAULT false;

-- Which native objects the application was brought to; null: none, or not all of them. A start of the service looks for
-- applications that have others than its own.
ALTER TABLE portico.application ADD COLUMN native_version text;
