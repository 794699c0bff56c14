"""What all processes share: settings, servers, channels, refusals, keys, logs, traces.

It knows no service. Services, commands and the demonstration may import it; the domain and the client may not.
"""
