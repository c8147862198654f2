"""From bytes to rows: every shape, every damage, and the same rows however the bytes are cut."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from han_solo.transcripts.model import QUARANTINED, Parsed
from han_solo.transcripts.parse import parse
from han_solo.transcripts.redact import redact
from tests.unit.transcript_lines import DAMAGED, GOOD, PICTURE, SHAPES, join, said


def parse_in_pieces(data: bytes, cuts: list[int]) -> Parsed:
    """Parse as a file is read that grows: each time from where the last look ended."""
    found, at = Parsed(), 0
    for cut in [*sorted({min(cut, len(data)) for cut in cuts}), len(data)]:
        piece = parse(data[at:cut], at)
        found.rows += piece.rows
        found.damage += piece.damage
        at += piece.consumed
    found.consumed = at
    return found


@pytest.mark.parametrize("kind", SHAPES)
def test_each_shape_is_of_its_kind(kind):
    found = parse(join(*[json.dumps(record).encode() for record in SHAPES[kind]]))

    assert [row.kind for row in found.rows] == [kind] * len(SHAPES[kind])
    assert found.damage == []


@pytest.mark.parametrize("damage", DAMAGED)
def test_each_damage_is_named_and_costs_no_line_beside_it(damage):
    line = DAMAGED[damage]
    found = parse(join(GOOD[0], line, GOOD[4]))

    assert [each.kind for each in found.damage] == [damage]
    assert found.damage[0].offset == len(GOOD[0]) + 1
    assert found.rows[0] == parse(join(GOOD[0])).rows[0]
    assert found.rows[-1].text == parse(join(GOOD[4])).rows[0].text
    lost = damage in QUARANTINED
    assert len(found.rows) == {True: 2, False: 3}[lost] + (damage == "several_on_a_line")
    assert bool(found.damage[0].raw) == lost
    if lost:
        assert found.damage[0].raw == line
    assert not any("\x00" in row.text for row in found.rows)


def test_a_record_behind_a_torn_one_on_its_line_is_found():
    torn = GOOD[0][:-20]
    found = parse(join(torn + GOOD[1], GOOD[4]))

    assert found.rows[0].text == parse(join(GOOD[1])).rows[0].text
    assert len(found.rows) == 2
    assert [(each.kind, each.raw) for each in found.damage] == [("broken", torn)]


def test_parts_of_a_torn_record_are_not_taken_for_records():
    part = json.dumps({"type": "text", "text": "x"}).encode()
    found = parse(join(b'{"type":"user","message":{"content":[' + part + b"," + part))

    assert found.rows == []
    assert found.count_damage() == {"broken": 1}


@pytest.mark.parametrize(
    "value", [b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 9_000 + b"1" + b"}" * 9_000, b"9" * 9_999]
)
@pytest.mark.parametrize("name", [b"message", b"news"])
def test_nesting_and_numbers_without_end_cost_one_line_at_most(name, value):
    strange = GOOD[0][:-1] + b',"' + name + b'":' + value + b"}"
    found = parse(join(GOOD[0], strange, GOOD[4]))

    assert {parse(join(each)).rows[0].text for each in (GOOD[0], GOOD[4])} <= {
        row.text for row in found.rows
    }
    assert len(found.rows) + len(found.damage) == 3


def test_what_the_database_could_not_hold_is_cut_to_what_it_can():
    strange = said("assistant", "Hi") | {"uuid": "u" * 9_000}
    strange["timestamp"] = "0001-01-01T00:00:00+14:00"
    strange["message"]["usage"] = {"input_tokens": 10**30, "output_tokens": -1}
    (row,) = parse(join(json.dumps(strange).encode())).rows

    assert (len(row.uuid), row.at, row.usage) == (150, None, (2**53, 0, 0, 0))


def test_secrets_are_taken_out_of_quarantined_bytes_too():
    secret = b"ghp_" + b"c" * 36
    (damage,) = parse(join(b'{"type":"user","message":{"content":"\xff ' + secret)).damage[1:]

    assert secret not in damage.raw
    assert damage.raw.endswith(b"[redacted: github_token]")


def test_a_torn_last_line_waits_until_it_ends():
    data = join(GOOD[0]) + GOOD[1]
    torn = parse(data[:-3])
    rest = parse(data[torn.consumed :] + b"\n", torn.consumed)

    assert len(torn.rows) == 1
    assert torn.consumed == len(GOOD[0]) + 1
    assert torn.damage == []
    assert torn.rows + rest.rows == parse(data + b"\n").rows


def test_a_last_line_that_is_whole_counts_without_its_line_end():
    assert len(parse(join(GOOD[0]) + GOOD[1]).rows) == 2


@given(
    lines=st.lists(st.sampled_from([*GOOD, *DAMAGED.values(), b"", b"   "]), max_size=12),
    cuts=st.lists(st.integers(0, 4000), max_size=8),
)
def test_any_cut_of_the_bytes_gives_the_same_rows(lines, cuts):
    data = join(*lines)
    whole, pieces = parse(data), parse_in_pieces(data, cuts)

    assert pieces.rows == whole.rows
    assert pieces.damage == whole.damage
    assert pieces.consumed == whole.consumed == len(data)


@given(st.binary(max_size=300))
def test_no_bytes_are_too_strange(data):
    found = parse(data + b"\n")

    assert found.consumed == len(data) + 1


@pytest.mark.deep
def test_100_000_mutated_lines_lose_none_of_the_good_ones_around_them():
    chance = random.Random(20261201)
    good = [json.dumps(said("user", f"good {number}", number)).encode() for number in range(50_000)]
    mutated = [_mutate(chance.choice(GOOD), chance) for _ in range(100_000)]
    lines = [each for n in range(50_000) for each in (mutated[2 * n], good[n], mutated[2 * n + 1])]
    found = parse(join(*lines))

    texts = {row.text for row in found.rows}
    assert {f"good {number}" for number in range(50_000)} <= texts
    assert sum(found.count_damage().values()) > 10_000


def _mutate(line: bytes, chance: random.Random) -> bytes:
    data = bytearray(line)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data))
        match chance.randrange(4):
            case 0:
                data[at] = chance.choice([b for b in range(256) if b != 10])
            case 1:
                del data[at : at + chance.randint(1, 9)]
            case 2:
                data[at:at] = chance.randbytes(chance.randint(1, 5)).replace(b"\n", b" ")
            case _:
                del data[at:]
        if not data:
            return b"x"
    return bytes(data)


def test_a_picture_is_dropped_and_named():
    (row,) = parse(join(json.dumps(SHAPES["prompt"][2]).encode())).rows

    assert PICTURE not in row.text
    assert row.text.startswith("[image image/png, 15 bytes, sha256 ")


def test_a_record_copied_into_another_session_has_the_same_identity():
    one, other = (
        parse(join(json.dumps({**said("user", "Hello"), "sessionId": session}).encode())).rows[0]
        for session in ("s-1", "s-2")
    )
    changed = parse(join(json.dumps(said("user", "Hello!")).encode())).rows[0]

    assert (one.uuid, one.digest) == (other.uuid, other.digest)
    assert changed.digest != one.digest


def test_usage_is_that_of_the_message():
    row = parse(join(json.dumps(said("assistant", "Hi", 7)).encode())).rows[0]

    assert (row.message_id, row.model, row.usage) == ("m-7", "model-1", (10, 5, 0, 0))


SECRETS = [
    "sk-ant-api03-" + "a" * 40,
    "sk-proj-" + "b" * 40,
    "ghp_" + "c" * 36,
    "github_pat_" + "d" * 60,
    "glpat-" + "e" * 24,
    "AKIA" + "F" * 16,
    "AIza" + "g" * 35,
    "xoxb-" + "1" * 20,
    "sk_live_" + "h" * 24,
    "hf_" + "i" * 34,
    "hs_abcdefgh_" + "j" * 43,
    "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeKKF2QT4",
    "-----BEGIN RSA PRIVATE KEY-----\nDEK-Info: A-C\n\nMIIE\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_known_shapes_of_secrets_are_taken_out_of_text_and_raw(secret):
    told = f"It is {secret} and no other."
    lines = [said("user", told), {"type": "what-comes-next", "key": secret}]
    found = parse(join(*[json.dumps(each).encode() for each in lines]))

    assert not any(secret in (row.text + (row.raw or "")) for row in found.rows)
    assert found.rows[0].text.startswith("It is [redacted: ")
    assert found.rows[0].text.endswith("] and no other.")
    assert [row.redacted for row in found.rows] == [1, 1]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("postgresql://scott:hunter2hunter2@db/x", "postgresql://[redacted: password_in_url]@db/x"),
        (
            "Authorization: Bearer abcdefghijklmnopqrstuv",
            "Authorization: Bearer [redacted: bearer]",
        ),
        ("export MY_API_KEY=abcdefgh12345", "export MY_API_KEY=[redacted: assigned_secret]"),
        ("DB_PASSWORD='correct horse' run", "DB_PASSWORD=[redacted: assigned_secret] run"),
        (
            r'{"command":"A_TOKEN=\"abcdefgh1\" x"}',
            '{"command":"A_TOKEN=[redacted: assigned_secret] x"}',
        ),
        ('A_TOKEN="$OTHER_TOKEN" B_KEY=$(cat key)', 'A_TOKEN="$OTHER_TOKEN" B_KEY=$(cat key)'),
        ("risk-free and https://example.org/a:b", "risk-free and https://example.org/a:b"),
    ],
)
def test_what_is_no_secret_stays(text, kept):
    assert redact(text)[0] == kept


def test_a_secret_written_with_escapes_is_found_too():
    line = b'{"type":"user","message":{"role":"user","content":"\\u0073k-ant-' + b"a" * 40 + b'"}}'

    assert "aaaa" not in parse(join(line)).rows[0].text
