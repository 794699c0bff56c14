"""Kernels, as whoever asks them needs them: decided by the session service, sealed by the audit service, then answered."""
