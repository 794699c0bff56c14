"""The agents of experiments: their tickets, and the desks at which tasks wait for them."""
