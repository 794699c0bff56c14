-- What a later request may go on from: a released answer with what it answered, encrypted under its session's data key.
--
-- It is no part of the chain: its caller may delete it, and it goes when its time is over or its session is erased. Old code does
-- not read this table.

CREATE TABLE kept (
    window_id text COLLATE "C" NOT NULL PRIMARY KEY,
    session_id text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    previous_id text COLLATE "C" NOT NULL,
    sealed bytea NOT NULL,
    expires_at text COLLATE "C" NOT NULL
);

CREATE INDEX kept_by_session ON kept (session_id);
CREATE INDEX kept_by_expiry ON kept (expires_at);

CREATE TRIGGER no_update BEFORE UPDATE ON kept FOR EACH ROW EXECUTE FUNCTION refused();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON kept EXECUTE FUNCTION refused();

CREATE FUNCTION drop_kept(window_name text) RETURNS bigint LANGUAGE sql SECURITY DEFINER
SET search_path = interlock_audit, pg_temp AS $$
    WITH gone AS (DELETE FROM kept WHERE window_id = window_name RETURNING 1) SELECT count(*) FROM gone;
$$;

CREATE FUNCTION drop_all_kept(session text) RETURNS bigint LANGUAGE sql SECURITY DEFINER
SET search_path = interlock_audit, pg_temp AS $$
    WITH gone AS (DELETE FROM kept WHERE session_id = session RETURNING 1) SELECT count(*) FROM gone;
$$;

CREATE FUNCTION drop_expired_kept(now text) RETURNS bigint LANGUAGE sql SECURITY DEFINER
SET search_path = interlock_audit, pg_temp AS $$
    WITH gone AS (DELETE FROM kept WHERE expires_at <= now RETURNING 1) SELECT count(*) FROM gone;
$$;

REVOKE ALL ON FUNCTION drop_kept(text), drop_all_kept(text), drop_expired_kept(text) FROM PUBLIC;
