"""Places of a dpe, on a clock of the test."""

from __future__ import annotations

import pytest

from interlock.domain.errors import Kind, Refused
from interlock.dpe.inference.places import WITHOUT_PLACE, PlaceLedger

pytestmark = pytest.mark.finding("F-20")

LEAST = 4


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def places(clock: Clock) -> PlaceLedger:
    return PlaceLedger(workers=1, clock=clock)


def filled(places: PlaceLedger, lease_s: float = 60.0, who: str = "") -> tuple[list[str], Refused]:
    """Take places until there is none."""
    taken: list[str] = []
    while True:
        try:
            taken.append(places.reserve(lease_s, who))
        except Refused as refused:
            return taken, refused


def judge(places: PlaceLedger, clock: Clock, took_s: float) -> None:
    place = places.reserve(60.0)
    with places.judging(place):
        clock.now += took_s
    places.release(place)


def test_a_full_house_is_told_with_the_time_to_come_again(places):
    """The refusal has a stable reason and a time above zero."""
    taken, refused = filled(places)

    assert len(taken) >= LEAST
    assert (refused.kind, refused.reason) == (Kind.EXHAUSTED, "OVERLOADED")
    assert refused.retry_after_ms > 0


def test_who_comes_back_when_told_gets_a_place(places, clock):
    """Answers end meanwhile, one after the other, at the measured rate."""
    taken, refused = filled(places)
    ends = clock.now + refused.retry_after_ms / 1000
    while taken and clock.now + 0.1 <= ends:
        with places.judging(taken[0]):
            clock.now += 0.1
        places.release(taken.pop(0))
    clock.now = max(clock.now, ends)

    assert places.reserve(60.0)


def test_a_place_given_back_is_free_at_once(places):
    """A provider that failed, or a client that left: nothing was judged."""
    taken, _ = filled(places)
    places.release(taken[0])
    again = places.reserve(60.0)
    places.release(taken[0])  # a second time changes nothing

    with pytest.raises(Refused):
        places.reserve(60.0)
    assert again not in taken


def test_a_lease_expires(places, clock):
    """A sidecar that died gives nothing back."""
    taken, _ = filled(places, lease_s=5.0)
    clock.now += 4.9
    for place in taken[:LEAST]:
        assert places.demand().held == len(taken), place
    clock.now += 0.2

    assert places.reserve(5.0)
    assert places.demand().held == 1


def test_a_place_does_not_expire_under_its_analysis(places, clock):
    """It ends with the analysis, when its time is over by then."""
    place = places.reserve(5.0)
    with places.judging(place):
        clock.now += 10.0
        others, _ = filled(places)
        assert places.demand().judging == 1
    assert places.demand().held == len(others)


def test_a_second_judgement_keeps_the_place(places, clock):
    """A remedy needs one; it waits for nobody, however many came meanwhile."""
    place = places.reserve(60.0)
    with places.judging(place):
        clock.now += 0.1
    others, _ = filled(places)
    with places.judging(place):
        assert places.demand().held == 1 + len(others)
    places.release(place)

    assert places.demand().held == len(others)


def test_given_back_during_its_analysis_it_ends_with_it(places):
    """A client that leaves does not free what is still at work."""
    place = places.reserve(60.0)
    with places.judging(place):
        places.release(place)
        assert places.demand().held == 1
    assert places.demand().held == 0


def test_an_answer_whose_place_is_lost_is_judged_all_the_same(places, clock):
    """It was paid for. Only where too many come without one, they are refused."""
    filled(places)
    with places.judging("place_of_before_the_restart"):
        assert places.demand().judging == 1

    held = [places.judging("") for _ in range(1 + WITHOUT_PLACE)]
    for one in held:
        one.__enter__()
    with pytest.raises(Refused, match="OVERLOADED"), places.judging(""):
        pass
    for one in held:
        one.__exit__(None, None, None)
    assert places.demand().judging == 0


def test_slower_answers_leave_fewer_places(clock):
    """The limit follows from what is measured, in both directions."""
    fast, slow = PlaceLedger(4, clock), PlaceLedger(4, clock)
    for _ in range(64):
        judge(fast, clock, 0.01)
        judge(slow, clock, 5.0)
    clock.now += 100.0

    assert fast.capacity.rate > 100 * slow.capacity.rate
    assert len(filled(fast)[0]) > 3 * len(filled(slow)[0])
    assert len(filled(slow)[0]) == 0
    assert slow.demand().held >= slow.capacity.least


def test_an_answer_that_is_judged_in_parts_teaches_before_it_ends(clock):
    """Streams may be open for long: with two hundred of them open, the first guess would stand for a minute."""
    places = PlaceLedger(1, clock)
    opened = [places.reserve(60.0) for _ in range(LEAST)]
    for _ in range(2):
        for place in opened:
            with places.judging(place):
                clock.now += 1.0
    learned = places.capacity.rate
    for place in opened:
        places.release(place)

    assert learned == pytest.approx(1 / 1.05, rel=0.35)
    assert places.capacity.rate == learned  # counted once, with all of its parts


def test_fewer_answers_than_workers_do_not_count_as_the_whole_machine(clock):
    """Otherwise an idle deployment would think that it can do half of what it can."""
    places = PlaceLedger(2, clock)
    for _ in range(64):
        judge(places, clock, 0.1)

    assert places.capacity.rate == pytest.approx(20.0)


def test_what_waits_is_worked_off_in_less_than_half_a_second(places, clock):
    """After an idle time as much as while more comes than can be done: the last of a burst comes as late as any."""
    for _ in range(64):
        judge(places, clock, 0.01)
    clock.now += 10.0
    for _ in range(40):
        filled(places)
        assert places.demand().level / places.capacity.rate < 0.5
        clock.now += 0.1


def test_a_place_that_is_kept_outlives_its_lease(places, clock):
    """An answer that comes in for longer keeps it, for as long as it asks; one that has ended is none any more."""
    place, other = places.reserve(60.0), places.reserve(60.0)
    clock.now += 50
    kept = places.keep(place, 60.0), places.keep(place, 1.0)
    clock.now += 50
    later = places.keep(other, 60.0), places.keep(place, 1.0)

    assert (kept, later) == ((True, True), (False, True))
    assert places.demand().held == 1


def test_a_caller_that_fills_the_house_shuts_nobody_out(places, clock):
    """Another is let in, up to as much as the first has; the first is refused meanwhile."""
    loud, _ = filled(places, who="loud")
    quiet, refused = filled(places, who="quiet")
    with pytest.raises(Refused):
        places.reserve(60.0, "loud")

    assert refused.reason == "OVERLOADED"
    assert len(loud) / 3 <= len(quiet) <= len(loud)


def test_callers_that_keep_coming_are_judged_alike(clock):
    """A flood of one, and another that sends a third of what can be judged: that one is never refused."""
    places, refused, judged = PlaceLedger(1, clock), 0, {"loud": 0, "quiet": 0}
    waiting: list[tuple[str, str]] = []
    for tick in range(3000):
        clock.now += 0.01
        for who in ["loud"] * 3 + ["quiet"] * (tick % 30 == 0):
            try:
                waiting.append((who, places.reserve(60.0, who)))
            except Refused:
                refused += who == "quiet"
        if tick % 10 == 0 and waiting:
            who, place = waiting.pop(next((n for n, one in enumerate(waiting) if one[0] == "quiet"), 0))
            with places.judging(place) as whose:
                clock.now += 0.1
            assert whose == who
            places.release(place)
            judged[who] += 1

    assert refused == 0
    assert judged["loud"] > judged["quiet"] > 50


def test_an_analysis_takes_a_place_of_its_own(places, clock):
    """It is its caller's while it goes on, counts like any other, and is free afterwards."""
    with places.judging("", "loud") as who:
        clock.now += 0.1
        demand = places.demand()
        assert (who, demand.held, set(demand.judged)) == ("loud", 1, {"loud"})
    assert places.demand().held == 0


def test_an_analysis_finds_no_place_where_all_are_held(places):
    """It is refused as one that asks for a place beforehand, with a time to come again; whoever asks for none has a bound of their own."""
    filled(places)
    with pytest.raises(Refused, match="OVERLOADED") as refused, places.judging("", ""):
        pass
    with places.judging(""):
        pass

    assert refused.value.retry_after_ms > 0


def test_an_analysis_of_whoever_has_less_finds_a_place(places):
    """One caller's places leave another one's analysis a place (A-38)."""
    filled(places, who="loud")
    with places.judging("", "quiet") as who:
        assert who == "quiet"
    with pytest.raises(Refused, match="OVERLOADED"), places.judging("", "loud"):
        pass


def test_a_place_that_is_held_is_not_taken_twice(places):
    """Where a call has one, its analysis is judged on that one."""
    place = places.reserve(60.0, "caller")
    with places.judging(place, "caller") as who:
        assert (who, places.demand().held) == ("caller", 1)
    assert places.demand().held == 1
