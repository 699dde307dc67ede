//go:build unix

package postgres

import (
	"path"
	"strings"
)

// History has PostgreSQL itself write down, in their order, the claims of connections, the commits of
// runs, their ends, and the removal of hosts, each with the start of a host that did it.
const History = `
create table public.history (n bigserial primary key, op text, connection text, run text, fence bigint, commits bigint,
  writer text, removed text);
create function public.note() returns trigger language plpgsql as $$ declare r record; begin
  if tg_op = 'DELETE' then r := old; else r := new; end if;
  insert into public.history (op, connection, run, fence, commits, writer)
    values (tg_op, r.connection, r.run, r.fence, r.commits, current_setting('application_name'));
  return null;
end $$;
create function public.note_removed() returns trigger language plpgsql as $$ begin
  insert into public.history (op, removed) values ('REMOVED', 'sluice ' || old.epoch);
  return null;
end $$;
create trigger note after insert or update or delete on sluice_store.lease for each row execute function public.note();
create trigger note_removed after delete on sluice_store.member for each row execute function public.note_removed();
create trigger note_restarted after update on sluice_store.member for each row when (old.epoch <> new.epoch)
  execute function public.note_removed()`

// Violations reads the history: a connection is claimed only while nobody has it, a commit is of the
// run that has it, under the newest fence and behind the commits before it, and a start of a host
// does nothing once it was removed.
const Violations = `
with h as (select *, lag(op) over w as was, lag(run) over w as had, lag(fence) over w as before,
  lag(commits) over w as done
  from history where connection is not null window w as (partition by connection order by n))
select 'n ' || n || ': ' || op || ' of ' || run || ' behind ' || was || ' of ' || had from h
where was is not null and case op when 'INSERT' then was <> 'DELETE' or fence <= before
  else was = 'DELETE' or run <> had or fence < before or commits < done end
union all
select 'n ' || h.n || ': ' || h.op || ' by a host that was removed'
from history h join history r on r.removed = h.writer and r.n < h.n`

// NameOf is the name of the database in a URL.
func NameOf(url string) string { return path.Base(strings.SplitN(url, "?", 2)[0]) }
