-- Who reads a long content, on whichever host: it is not removed meanwhile.
CREATE TABLE reading (
  number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  content bigint NOT NULL,
  epoch   text COLLATE "C" NOT NULL -- of the host that reads it
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
CREATE INDEX ON reading (content);

-- Hosts that others removed because they were not heard of, until they are there again.
CREATE TABLE lost (
  id      text COLLATE "C" PRIMARY KEY,
  epoch   text COLLATE "C" NOT NULL,
  joined  timestamptz NOT NULL,
  seen    timestamptz NOT NULL,
  runs    int NOT NULL,             -- that it had
  about   bytea NOT NULL
);
