-- What the service's role may do: add and read. Neither UPDATE nor DELETE nor TRUNCATE of anything that says what happened.
-- Granted anew after every migration; {role} is the user of audit_url.

GRANT USAGE ON SCHEMA interlock_audit TO {role};
REVOKE ALL ON ALL TABLES IN SCHEMA interlock_audit FROM {role};
GRANT SELECT ON ALL TABLES IN SCHEMA interlock_audit TO {role};
GRANT INSERT ON events, windows, reports, content_keys, contents, leaves, merkle_nodes, checkpoints, held, held_contents,
    decisions, handouts, kept TO {role};
GRANT INSERT, UPDATE ON cursors TO {role};
GRANT INSERT, UPDATE, DELETE ON dead_letters, stuck TO {role};
GRANT EXECUTE ON FUNCTION instr(text, text), is_marked(text, text, bigint), drop_content(text, text), drop_held(text),
    drop_unlogged(), destroy_key(text), drop_contents(text), drop_reports(text), drop_all_held(text), drop_windows(text),
    drop_events(text, bigint), drop_kept(text), drop_all_kept(text), drop_expired_kept(text) TO {role};
