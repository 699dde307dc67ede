-- The transaction that a connection of a host began last, as of those that are durable: what says
-- whether the answer to a COMMIT was lost, or the COMMIT.
CREATE TABLE attempt (
  connection text COLLATE "C" PRIMARY KEY, -- of a host to the server; random
  n          bigint NOT NULL,
  at         timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
