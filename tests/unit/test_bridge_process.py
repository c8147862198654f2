"""What ``up`` says of a bridge that ended: the command's own sentence and hint, both."""

from han_solo.embedded.bridge_process import find_error


def test_the_sentence_and_the_hint_are_both_kept():
    said = '{"event": "x"}\nerror: The database is newer.\n       Start han-solo 9.9.\n'
    assert find_error(said) == "The database is newer. Start han-solo 9.9."


def test_an_end_without_a_sentence_is_told_by_its_last_line():
    assert find_error("Traceback\nKeyError: 'x'\n") == "KeyError: 'x'."
