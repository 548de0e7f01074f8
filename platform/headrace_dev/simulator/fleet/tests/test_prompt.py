"""The toy tokenizer: a conversation's next turn begins with the last one's prompt and answer."""

from headrace_dev.simulator.fleet import prompt

TURN = [{"role": "system", "content": "be brief and kind"}, {"role": "user", "content": "one two three " * 9}]


def test_the_next_turn_begins_with_this_one() -> None:
    text = prompt.rendered(TURN)
    said = prompt.answer(text, 40)
    following = prompt.rendered([*TURN, {"role": "assistant", "content": said}, {"role": "user", "content": "more"}])
    assert following.startswith(text + said.encode())
    first, second = (prompt.chain(each, "", 8) for each in (text + said.encode(), following))
    assert second[: len(first)] == first


def test_an_answer_is_as_long_as_told_and_its_prompts_own() -> None:
    assert prompt.token_count(prompt.answer(b"a", 100).encode()) == 100
    assert prompt.answer(b"a", 100) == prompt.answer(b"a", 300)[:400]
    assert prompt.answer(b"a", 100) != prompt.answer(b"b", 100)
    assert prompt.said("sum it up " + prompt.told(120)) == 120
    assert prompt.said("sum it up") is None


def test_salts_and_beginnings_keep_blocks_apart() -> None:
    text = b"abcd" * 64
    assert len(prompt.chain(text, "", 16)) == 4
    assert len(set(prompt.chain(text, "", 16)) | set(prompt.chain(text, "acme", 16))) == 8
    assert prompt.chain(b"x" + text[1:], "", 16)[3] != prompt.chain(text, "", 16)[3]
    assert prompt.chain_of_tokens(range(40), "", 16) == prompt.chain_of_tokens(range(47), "", 16)


def test_malformed_messages_count_as_empty() -> None:
    assert prompt.token_count(prompt.rendered(["?", {"role": "user"}, {"content": [{"text": "abcd"}]}])) == 5
