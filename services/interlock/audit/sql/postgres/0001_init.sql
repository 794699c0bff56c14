-- The audit log on PostgreSQL: what the seven migrations of SQLite hold, under the same rules (SPEC-011 §6, AUD-2).
--
-- Everything belongs to an owner. The service connects as another role, which may add and read (grants.sql) and deletes only
-- by the functions below. The triggers hold for everybody, the owner included: UPDATE and TRUNCATE are refused, DELETE needs
-- the CONTENT_ERASED or TRUNCATED event of the session's own chain. Keys and times compare byte by byte (COLLATE "C").

CREATE TABLE events (
    session_id text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL CHECK (sequence >= 1),
    window_id text COLLATE "C" NOT NULL,
    event_type text COLLATE "C" NOT NULL,
    severity integer NOT NULL CHECK (severity BETWEEN 1 AND 5),
    timestamp text COLLATE "C" NOT NULL,
    data_json text COLLATE "C" NOT NULL,
    key_version integer NOT NULL,
    hmac text COLLATE "C" NOT NULL,
    PRIMARY KEY (session_id, sequence)
);

CREATE INDEX events_session_created ON events (session_id) WHERE event_type = 'SESSION_CREATED';
CREATE INDEX events_content_erased ON events (session_id, sequence) WHERE event_type = 'CONTENT_ERASED';
CREATE INDEX events_truncated ON events (session_id, sequence) WHERE event_type = 'TRUNCATED';

CREATE TABLE windows (
    window_id text COLLATE "C" NOT NULL PRIMARY KEY,
    session_id text COLLATE "C" NOT NULL,
    window_number bigint NOT NULL CHECK (window_number >= 1),
    parent_ids text COLLATE "C" NOT NULL,
    response_hash text COLLATE "C" NOT NULL,
    report_hash text COLLATE "C" NOT NULL,
    risk_level integer NOT NULL CHECK (risk_level BETWEEN 1 AND 4),
    charge_micros bigint NOT NULL CHECK (charge_micros BETWEEN 0 AND 500000),
    status text COLLATE "C" NOT NULL CHECK (status IN ('COMPLETED', 'HALTED', 'HELD')),
    settle_json text COLLATE "C" NOT NULL,
    trail_id text COLLATE "C" NOT NULL UNIQUE,
    request_hash text COLLATE "C" NOT NULL,
    timestamp text COLLATE "C" NOT NULL,
    key_version integer NOT NULL,
    hmac text COLLATE "C" NOT NULL,
    content_hash text COLLATE "C" NOT NULL DEFAULT '',
    sealed_report_hash text COLLATE "C" NOT NULL DEFAULT ''
);

CREATE INDEX windows_by_session ON windows (session_id, window_number, window_id);

CREATE TABLE reports (
    window_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES windows (window_id),
    body bytea NOT NULL
);

CREATE TABLE content_keys (
    session_id text COLLATE "C" NOT NULL PRIMARY KEY,
    key_version integer NOT NULL,
    wrapped bytea NOT NULL
);

CREATE TABLE contents (
    window_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES windows (window_id),
    session_id text COLLATE "C" NOT NULL,
    sealed bytea NOT NULL
);

CREATE INDEX contents_by_session ON contents (session_id);

CREATE TABLE leaves (
    position bigint NOT NULL PRIMARY KEY CHECK (position >= 0),
    session_id text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL CHECK (sequence >= 1),
    leaf_hash bytea NOT NULL CHECK (length(leaf_hash) = 32),
    UNIQUE (session_id, sequence)
);

CREATE TABLE unlogged (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL
);

CREATE TABLE merkle_nodes (
    level integer NOT NULL CHECK (level IN (8, 16)),
    number bigint NOT NULL CHECK (number >= 0),
    hash bytea NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (level, number)
);

CREATE TABLE checkpoints (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    size bigint NOT NULL CHECK (size >= 0),
    note text COLLATE "C" NOT NULL
);

CREATE TABLE held (
    window_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES windows (window_id),
    session_id text COLLATE "C" NOT NULL,
    held_at text COLLATE "C" NOT NULL,
    expires_at text COLLATE "C" NOT NULL,
    policy_hash text COLLATE "C" NOT NULL
);

CREATE INDEX held_by_time ON held (held_at, window_id);
CREATE INDEX held_by_session ON held (session_id, held_at);
CREATE INDEX held_by_expiry ON held (expires_at);

CREATE TABLE held_contents (
    window_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES held (window_id),
    session_id text COLLATE "C" NOT NULL,
    sealed bytea NOT NULL
);

CREATE INDEX held_contents_by_session ON held_contents (session_id);

CREATE TABLE decisions (
    window_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES held (window_id),
    approved integer NOT NULL CHECK (approved IN (0, 1)),
    reviewer_id text COLLATE "C" NOT NULL,
    approval_id text COLLATE "C" NOT NULL UNIQUE,
    token text COLLATE "C" NOT NULL,
    decided_at text COLLATE "C" NOT NULL,
    expires_at text COLLATE "C" NOT NULL
);

CREATE TABLE handouts (
    window_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES held (window_id),
    handed_out_at text COLLATE "C" NOT NULL
);

CREATE TABLE cursors (
    sink text COLLATE "C" NOT NULL PRIMARY KEY,
    position bigint NOT NULL CHECK (position >= 0)
);

CREATE TABLE dead_letters (
    sink text COLLATE "C" NOT NULL,
    first bigint NOT NULL CHECK (first >= 0),
    last bigint NOT NULL CHECK (last >= first),
    reason text COLLATE "C" NOT NULL,
    at text COLLATE "C" NOT NULL,
    PRIMARY KEY (sink, first)
);

-- SQLite's name for it, so that both are asked the same way.
CREATE FUNCTION instr(whole text, part text) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS 'SELECT strpos(whole, part)';

CREATE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'integrity_constraint_violation';
END;
$$;

CREATE FUNCTION is_marked(session text, mark text, after bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF mark = 'TRUNCATED' THEN
        RETURN EXISTS (SELECT 1 FROM events
            WHERE session_id = session AND event_type = 'TRUNCATED' AND sequence > after);
    END IF;
    RETURN EXISTS (SELECT 1 FROM events
        WHERE session_id = session AND event_type = 'CONTENT_ERASED' AND sequence > after);
END;
$$;

-- Of an event: a later TRUNCATED. Of a window or a hold: a TRUNCATED.
CREATE FUNCTION kept_unless_truncated() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    session text;
    after bigint := 0;
BEGIN
    IF TG_TABLE_NAME IN ('decisions', 'handouts') THEN
        SELECT h.session_id INTO session FROM held AS h WHERE h.window_id = OLD.window_id;
    ELSE
        session := OLD.session_id;
    END IF;
    IF TG_TABLE_NAME = 'events' THEN
        after := OLD.sequence;
    END IF;
    IF NOT is_marked(session, 'TRUNCATED', after) THEN
        RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN OLD;
END;
$$;

-- Of a data key, a report or a content: CONTENT_ERASED or TRUNCATED; of a content also its own CONTENT_DROPPED.
CREATE FUNCTION kept_unless_erased() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    session text;
BEGIN
    IF TG_TABLE_NAME = 'reports' THEN
        SELECT w.session_id INTO session FROM windows AS w WHERE w.window_id = OLD.window_id;
    ELSE
        session := OLD.session_id;
    END IF;
    IF is_marked(session, 'CONTENT_ERASED', 0) OR is_marked(session, 'TRUNCATED', 0) THEN
        RETURN OLD;
    END IF;
    IF TG_TABLE_NAME = 'contents' THEN
        IF EXISTS (SELECT 1 FROM events AS e
            WHERE e.session_id = session AND e.window_id = OLD.window_id AND e.event_type = 'CONTENT_DROPPED') THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'the audit log is append-only: what it keeps goes with a CONTENT_ERASED event'
        USING ERRCODE = 'integrity_constraint_violation';
END;
$$;

CREATE FUNCTION in_sequence() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.sequence <> (SELECT COALESCE(MAX(sequence), 0) + 1 FROM events WHERE session_id = NEW.session_id) THEN
        RAISE EXCEPTION 'events follow one another without gaps' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END;
$$;

CREATE FUNCTION in_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.position <> (SELECT COALESCE(MAX(position) + 1, 0) FROM leaves) THEN
        RAISE EXCEPTION 'positions follow one another without gaps' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END;
$$;

CREATE FUNCTION note_unlogged() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM leaves WHERE session_id = NEW.session_id AND sequence = NEW.sequence) THEN
        INSERT INTO unlogged (session_id, sequence) VALUES (NEW.session_id, NEW.sequence);
    END IF;
    RETURN NULL;
END;
$$;

CREATE FUNCTION kept_until_logged() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM leaves WHERE session_id = OLD.session_id AND sequence = OLD.sequence) THEN
        RAISE EXCEPTION 'an event keeps its place until it has a position'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN OLD;
END;
$$;

CREATE TRIGGER in_sequence BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION in_sequence();
CREATE TRIGGER note_unlogged AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION note_unlogged();
CREATE TRIGGER in_order BEFORE INSERT ON leaves FOR EACH ROW EXECUTE FUNCTION in_order();
CREATE TRIGGER kept BEFORE DELETE ON unlogged FOR EACH ROW EXECUTE FUNCTION kept_until_logged();

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['events', 'windows', 'reports', 'content_keys', 'contents', 'leaves', 'unlogged',
        'merkle_nodes', 'checkpoints', 'held', 'held_contents', 'decisions', 'handouts'] LOOP
        EXECUTE format('CREATE TRIGGER no_update BEFORE UPDATE ON %I FOR EACH ROW EXECUTE FUNCTION refused()', name);
        EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON %I EXECUTE FUNCTION refused()', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['leaves', 'merkle_nodes', 'checkpoints'] LOOP
        EXECUTE format('CREATE TRIGGER no_delete BEFORE DELETE ON %I FOR EACH ROW EXECUTE FUNCTION refused()', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['events', 'windows', 'held', 'decisions', 'handouts'] LOOP
        EXECUTE format('CREATE TRIGGER no_delete BEFORE DELETE ON %I FOR EACH ROW EXECUTE FUNCTION '
            'kept_unless_truncated()', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['reports', 'content_keys', 'contents'] LOOP
        EXECUTE format('CREATE TRIGGER no_delete BEFORE DELETE ON %I FOR EACH ROW EXECUTE FUNCTION '
            'kept_unless_erased()', name);
    END LOOP;
END;
$$;

-- What the service may delete: it has no DELETE of its own, and the triggers ask for the event first.
CREATE FUNCTION drop_content(session text, window_name text) RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$
    WITH gone AS (DELETE FROM contents WHERE session_id = session AND window_id = window_name RETURNING 1)
    SELECT count(*) FROM gone;
$$;

CREATE FUNCTION drop_held(window_name text) RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$
    WITH gone AS (DELETE FROM held_contents WHERE window_id = window_name RETURNING 1) SELECT count(*) FROM gone;
$$;

CREATE FUNCTION drop_unlogged() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$
    WITH gone AS (
        DELETE FROM unlogged AS u USING leaves AS l WHERE l.session_id = u.session_id AND l.sequence = u.sequence
        RETURNING 1
    )
    SELECT count(*) FROM gone;
$$;

CREATE FUNCTION destroy_key(session text) RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$
    WITH gone AS (DELETE FROM content_keys WHERE session_id = session RETURNING 1) SELECT count(*) FROM gone;
$$;

CREATE FUNCTION drop_contents(session text) RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$
    WITH gone AS (DELETE FROM contents WHERE session_id = session RETURNING 1) SELECT count(*) FROM gone;
$$;

CREATE FUNCTION drop_reports(session text) RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$
    WITH gone AS (
        DELETE FROM reports AS r USING windows AS w WHERE w.window_id = r.window_id AND w.session_id = session
        RETURNING 1
    )
    SELECT count(*) FROM gone;
$$;

CREATE FUNCTION drop_all_held(session text) RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$
    WITH gone AS (
        DELETE FROM held_contents WHERE session_id = session
            AND (is_marked(session, 'CONTENT_ERASED', 0) OR is_marked(session, 'TRUNCATED', 0))
        RETURNING 1
    )
    SELECT count(*) FROM gone;
$$;

CREATE FUNCTION drop_windows(session text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    dropped bigint;
BEGIN
    DELETE FROM handouts AS o USING held AS h WHERE h.window_id = o.window_id AND h.session_id = session;
    DELETE FROM decisions AS d USING held AS h WHERE h.window_id = d.window_id AND h.session_id = session;
    DELETE FROM held WHERE session_id = session;
    DELETE FROM windows WHERE session_id = session;
    GET DIAGNOSTICS dropped = ROW_COUNT;
    RETURN dropped;
END;
$$;

CREATE FUNCTION drop_events(session text, up_to bigint) RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$
    WITH gone AS (DELETE FROM events WHERE session_id = session AND sequence <= up_to RETURNING 1)
    SELECT count(*) FROM gone;
$$;

-- A function that runs as its owner finds its tables here, whatever path its caller has set; nobody else may call it.
DO $$
DECLARE
    found record;
BEGIN
    FOR found IN SELECT p.oid::regprocedure AS name FROM pg_proc AS p WHERE p.pronamespace = 'interlock_audit'::regnamespace
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = interlock_audit, pg_temp', found.name);
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', found.name);
    END LOOP;
END;
$$;

ALTER FUNCTION instr(text, text) RESET search_path;
