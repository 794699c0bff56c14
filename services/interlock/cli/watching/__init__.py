"""What a terminal shows as it happens: the sessions that are active (``interlock top``), and one of them."""
