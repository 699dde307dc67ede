ALTER TABLE heap ADD files bigint NOT NULL DEFAULT 0, ADD file_bytes bigint NOT NULL DEFAULT 0;
ALTER TABLE stream ADD holds boolean NOT NULL DEFAULT false; -- its records may hold files

CREATE TABLE file (
  heap    bigint,
  digest  bytea,             -- SHA-256
  refs    bigint NOT NULL,   -- records that hold it, of each once
  size    bigint NOT NULL,
  body    bytea NOT NULL,    -- as the record called it that held it first
  data    bytea,             -- a short content
  content bigint,            -- of a long one
  PRIMARY KEY (heap, digest),
  CHECK ((data IS NULL) <> (content IS NULL))
);
ALTER TABLE file ALTER data SET STORAGE EXTERNAL;
CREATE INDEX ON file (heap) WHERE refs = 0;
CREATE TABLE held (
  heap bigint, stream text COLLATE "C", key bytea, body bytea NOT NULL,
  PRIMARY KEY (heap, stream, key)
);

CREATE TABLE content (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  epoch  text COLLATE "C" NOT NULL, -- of the host that wrote it
  heap   bigint,             -- null until a commit takes it
  erased boolean NOT NULL DEFAULT false
);
CREATE INDEX ON content (heap);
CREATE INDEX ON content (number) WHERE erased;
CREATE TABLE piece (
  content bigint, n int, sum bigint NOT NULL, data bytea NOT NULL, -- sum: CRC-32C
  PRIMARY KEY (content, n)
);
ALTER TABLE piece ALTER data SET STORAGE EXTERNAL;
