-- When hosts may ask which origin. It is worth no disk write.
CREATE UNLOGGED TABLE pace (
  origin text COLLATE "C" PRIMARY KEY,
  used   timestamptz NOT NULL, -- until then turns are taken, as far as a burst is used up
  closed timestamptz NOT NULL  -- until then there are none
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
