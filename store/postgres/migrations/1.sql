CREATE TABLE member (
  id       text COLLATE "C" PRIMARY KEY,
  epoch    text COLLATE "C" NOT NULL,  -- of this start of the host; another one writes nothing
  works    int NOT NULL,               -- see generation in the code
  expires  timestamptz NOT NULL,       -- when it counts as dead
  seen     timestamptz NOT NULL,
  joined   timestamptz NOT NULL,
  draining boolean NOT NULL DEFAULT false,
  about    bytea NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
CREATE TABLE lead ( -- the host that does what one of all does
  one   boolean PRIMARY KEY DEFAULT true CHECK (one),
  epoch text COLLATE "C" NOT NULL DEFAULT ''
);
INSERT INTO lead DEFAULT VALUES;

CREATE TABLE connector (id text COLLATE "C", bundled boolean, body bytea NOT NULL, PRIMARY KEY (id, bundled));
CREATE TABLE module (digest text COLLATE "C" PRIMARY KEY, wasm bytea NOT NULL);
CREATE TABLE pin (id text COLLATE "C" PRIMARY KEY, body bytea NOT NULL);
CREATE TABLE connection (id text COLLATE "C" PRIMARY KEY, permit bytea, body bytea NOT NULL);

CREATE TABLE document (
  kind text COLLATE "C", id bytea, revision bigint NOT NULL, data bytea NOT NULL, expires timestamptz,
  PRIMARY KEY (kind, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX ON document (expires) WHERE expires IS NOT NULL;

CREATE TABLE run (
  id         text COLLATE "C" PRIMARY KEY,
  number     bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  connection text COLLATE "C" NOT NULL,
  week       bigint NOT NULL,            -- of its timeline
  next       bigint NOT NULL DEFAULT 0,  -- sequence of the next event, once it has ended
  commits    bigint NOT NULL DEFAULT 0,  -- likewise
  ended      boolean NOT NULL DEFAULT false,
  pruned     boolean NOT NULL DEFAULT false,
  body       bytea NOT NULL
);
CREATE INDEX ON run (connection, id);
CREATE INDEX ON run (week) WHERE NOT pruned;

CREATE TABLE fence (connection text COLLATE "C" PRIMARY KEY, fence bigint NOT NULL);
CREATE TABLE lease (
  connection text COLLATE "C" PRIMARY KEY,
  run        text COLLATE "C" NOT NULL UNIQUE,
  number     bigint NOT NULL,
  week       bigint NOT NULL,
  fence      bigint NOT NULL,
  next       bigint NOT NULL DEFAULT 0,
  commits    bigint NOT NULL DEFAULT 0,
  epoch      text COLLATE "C" NOT NULL,  -- of the host that has the run
  expires    timestamptz NOT NULL,       -- at the earliest: it lasts as long as its host
  body       bytea NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

CREATE TABLE staged (run text COLLATE "C", stream text COLLATE "C", body bytea NOT NULL, PRIMARY KEY (run, stream));
CREATE TABLE question (run text COLLATE "C", id text COLLATE "C", body bytea NOT NULL, PRIMARY KEY (run, id));
CREATE TABLE state (
  connection text COLLATE "C", permit text COLLATE "C", stream text COLLATE "C", body bytea NOT NULL,
  PRIMARY KEY (connection, permit, stream)
);
CREATE TABLE gap (
  connection text COLLATE "C", permit text COLLATE "C", id bytea, body bytea NOT NULL,
  PRIMARY KEY (connection, permit, id)
);

CREATE TABLE heap (
  number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- of its table of records
  connection text COLLATE "C" NOT NULL,
  erased     boolean NOT NULL DEFAULT false
);
CREATE UNIQUE INDEX ON heap (connection) WHERE NOT erased;
CREATE TABLE stream (
  number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  heap    bigint NOT NULL,
  name    text COLLATE "C" NOT NULL,
  live    bigint NOT NULL DEFAULT 0,
  dead    bigint NOT NULL DEFAULT 0,
  last    bigint NOT NULL DEFAULT 0,  -- newest version
  bytes   bigint NOT NULL DEFAULT 0,
  sum     numeric NOT NULL DEFAULT 0, -- of the sums of its records
  updated timestamptz NOT NULL DEFAULT now(),
  UNIQUE (heap, name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

CREATE TABLE timeline (week bigint PRIMARY KEY);
