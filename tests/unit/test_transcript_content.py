"""What is kept of a record beside its speech: ids, raw records without pictures, exact bytes."""

import base64
import json

import pytest

from han_solo.transcripts.parse import parse

from .transcript_lines import join, line, said

PICTURE = base64.b64encode(bytes(range(256)) * 40).decode()


def rows(*records):
    return parse(join(*[json.dumps(record).encode() for record in records])).rows


def test_a_call_and_its_result_share_an_id():
    call, result, error = rows(
        said(
            "assistant", [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"a": 1}}]
        ),
        said("user", [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}]),
        said("user", [{"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True}]),
    )
    assert call.text == '[calls Bash toolu_1] {"a":1}'.replace(":1", ": 1")
    assert result.text == "[result toolu_1] done"
    assert error.text == "[error toolu_1] "


@pytest.mark.parametrize(
    "attachment",
    [
        {"type": "file", "content": {"file": {"base64": PICTURE, "type": "image/png"}}},
        {"type": "file", "blocks": [{"type": "image", "source": {"data": PICTURE}}]},
        {"type": "file", "url": {"data": f"data:image/png;base64,{PICTURE}"}},
    ],
)
def test_the_bytes_of_pictures_are_left_out_of_records_kept_raw(attachment):
    (row,) = rows(line("attachment", attachment=attachment))
    assert PICTURE[:100] not in row.raw
    assert "10240 bytes, sha256 " in row.raw
    assert json.loads(row.raw)["attachment"]["type"] == "file"


def test_what_only_looks_like_base64_stays():
    (row,) = rows(line("attachment", attachment={"type": "base64", "data": "A" * 100}))
    assert "A" * 100 in row.raw


def test_a_summary_keeps_the_leaf_it_ends_at():
    (row,) = rows({"type": "summary", "summary": "About herons", "leafUuid": "u-9"})
    assert (row.kind, row.text) == ("summary", "About herons")
    assert json.loads(row.raw)["leafUuid"] == "u-9"


def test_a_side_agent_without_a_name_is_told_from_the_session():
    plain, side, named = rows(
        said("user", "a", 1),
        said("user", "b", 2, isSidechain=True),
        said("user", "c", 3, isSidechain=True, agentId="a1"),
    )
    assert (plain.agent_id, side.agent_id, named.agent_id) == (None, "side", "a1")


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"type":"user","message":\xff\xfe\x80',
        b"\xed\xa0\x80 nothing",
        b'["\xc3\x28"]',
        b"\xf0\x9f",
    ],
)
def test_quarantined_bytes_are_the_file_s_own(damaged):
    good = json.dumps(said("user", "good")).encode()
    found = parse(join(good, damaged, good))
    assert [row.text for row in found.rows] == ["good", "good"]
    kept = b"".join(each.raw for each in found.damage)
    assert kept == damaged
    assert {each.offset for each in found.damage} == {len(good) + 1}


def test_bad_bytes_in_a_text_are_replaced_and_cost_nothing_else():
    damaged = b'{"type":"user","uuid":"c","message":{"role":"user","content":"a\xffb\\ud800c"}}'
    (row,) = parse(join(damaged)).rows
    assert row.text == "a\ufffdb\ufffdc"
