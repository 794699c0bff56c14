"""When a provider may be asked again, as its headers say it."""

from __future__ import annotations

import pytest

from interlock.sidecar.provider.delays import LEAST_MS, MOST_MS, told_ms

NOON = 1_445_412_360.0  # Wed, 21 Oct 2015 07:26:00 GMT


@pytest.mark.parametrize(
    ("headers", "delay"),
    [
        ({}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "١٢"}, None),
        ({"retry-after": "Wed, 21 Oct 99999 07:28:00 GMT"}, None),
        ({"retry-after": "7"}, 7000),
        ({"retry-after": "2.5"}, 2500),
        ({"retry-after": "0"}, LEAST_MS),
        ({"retry-after": "999999999"}, MOST_MS),
        ({"retry-after-ms": "2500", "retry-after": "3"}, 2500),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 120_000),
        ({"retry-after": "Wed, 21 Oct 2015 07:20:00 GMT"}, LEAST_MS),
    ],
)
def test_a_delay_is_what_the_headers_say(headers, delay):
    """Seconds, milliseconds and dates are read; what is none of them says nothing."""
    assert told_ms(headers, now_s=NOON) == delay
