-- What runs that wait were answered, sealed by their host.
CREATE TABLE journal (run text COLLATE "C", n bigint, body bytea NOT NULL, PRIMARY KEY (run, n));
