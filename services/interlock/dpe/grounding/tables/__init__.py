"""Tables, records and lists as sources: their fields, what each is about, and values that are in the wrong place."""
