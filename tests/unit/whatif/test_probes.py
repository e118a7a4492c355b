"""The search for the first yes."""

from tutti.whatif.probes import ProbeResult, SearchRange, SearchResult, first_yes
from tutti.whatif.results import Certainty

PROVED, TRIED = Certainty.PROVED, Certainty.TRIED
LOSS = {False: ProbeResult.WAITS, True: ProbeResult.STARTS}


class Oracle:
    """Says yes from a number on, remembers what it was asked, and gets tired."""

    def __init__(self, first: int, patience: int = 99, no: ProbeResult = ProbeResult.WAITS) -> None:
        self.first, self.patience, self.no = first, patience, no
        self.asked: list[int] = []

    def __call__(self, number: int) -> ProbeResult | None:
        """Answer, if it is not too tired."""
        if len(self.asked) == self.patience:
            return None
        self.asked.append(number)
        return ProbeResult.STARTS if number >= self.first else self.no


def search(oracle: Oracle, *guesses: int, most: int = 1000) -> SearchResult:
    return first_yes(oracle, SearchRange(1, most, guesses))


def test_a_good_guess_is_found_with_two_questions() -> None:
    oracle = Oracle(7)
    assert search(oracle, 7) == SearchResult(7, PROVED)
    assert oracle.asked == [7, 6]


def test_the_least_number_needs_no_second_question() -> None:
    oracle = Oracle(1)
    assert search(oracle, 1) == SearchResult(1, PROVED)
    assert oracle.asked == [1]


def test_a_guess_that_is_too_large_is_halved() -> None:
    assert search(Oracle(7), 64) == SearchResult(7, PROVED)


def test_a_guess_that_is_too_small_is_doubled_upon() -> None:
    oracle = Oracle(100)
    assert search(oracle, 3) == SearchResult(100, PROVED)
    assert oracle.asked[:4] == [3, 4, 6, 10]


def test_guesses_below_a_no_are_passed_over() -> None:
    oracle = Oracle(9)
    assert search(oracle, 5, 3, 9) == SearchResult(9, PROVED)
    assert oracle.asked == [5, 9, 8]


def test_nothing_beyond_the_most_is_asked() -> None:
    oracle = Oracle(100)
    assert search(oracle, most=10) == SearchResult(None, TRIED)
    assert max(oracle.asked) == 10


def test_what_was_not_proved_to_be_a_no_is_only_tried() -> None:
    assert search(Oracle(7, no=ProbeResult.NOT_FOUND), 7) == SearchResult(7, TRIED)
    assumed = SearchRange(1, 9, [1], is_proved=False)
    assert first_yes(Oracle(1), assumed) == SearchResult(1, TRIED)


def test_a_search_that_is_cut_says_so_and_keeps_what_it_has() -> None:
    assert search(Oracle(7, patience=2), 64) == SearchResult(63, TRIED, cut=True)
    assert search(Oracle(70, patience=2), 1) == SearchResult(None, TRIED, cut=True)


def test_answers_that_turn_still_end_at_a_yes_above_a_no() -> None:
    answers = {n: LOSS[n in (4, 5, 9, 10)] for n in range(1, 12)}
    search_result = first_yes(answers.__getitem__, SearchRange(1, 11, [10]))
    assert search_result.number is not None
    assert answers[search_result.number] is ProbeResult.STARTS
    assert answers[search_result.number - 1] is ProbeResult.WAITS
