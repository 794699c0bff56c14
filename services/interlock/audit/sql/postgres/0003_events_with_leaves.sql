-- An event is added with its leaf, in one transaction and after it, as every service on PostgreSQL does: no other INSERT of an
-- event is accepted, of the service's role or of the owner. Before, such an event was noted and got a leaf later.
CREATE OR REPLACE FUNCTION note_unlogged() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = interlock_audit, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM leaves WHERE session_id = NEW.session_id AND sequence = NEW.sequence) THEN
        RAISE EXCEPTION 'an event is added with its leaf' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END;
$$;
