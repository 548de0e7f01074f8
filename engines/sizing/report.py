"""The answer as text for a terminal."""

from collections.abc import Sequence

from engines.sizing import document, reasoning
from engines.sizing.alternatives import Alternative
from engines.sizing.answer import Answer
from engines.sizing.published import Comparison, sources, spread

GIB = 2**30


def table(rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> str:
    """Columns padded to their widest cell, those in `right` aligned right; the first row is the heading."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def answer_text(answer: Answer, alternatives: list[Alternative] | None = None) -> str:
    blocks = [document.sentence(answer), _reasons(answer), _figures(answer)]
    if answer.cost:
        blocks.append(_money(answer))
    if alternatives:
        blocks.append(_alternatives(alternatives, answer.gpus))
    notes = document.model(answer)["notes"]
    if answer.question.assumptions or notes:
        blocks.append(
            "\n".join(["Assumed and noted", *(f"  - {each}" for each in (*answer.question.assumptions, *notes))])
        )
    return "\n\n".join(blocks)


def _reasons(answer: Answer) -> str:
    return "\n".join(f"  {number}. {line}" for number, line in enumerate(reasoning.lines(answer), 1))


def _figures(answer: Answer) -> str:
    load, day, targets = answer.fleet.load, answer.day, answer.question.targets
    rows = [
        ["at the peak, per replica", "mean", "p99", "target"],
        ["TTFT", seconds(load.ttft_mean), seconds(load.ttft_p99), seconds(targets.ttft_p99)],
        ["TPOT", seconds(load.tpot_mean), seconds(load.tpot_p99), seconds(targets.tpot_p99)],
        ["longest pause in an answer", "", seconds(load.longest_gap), ""],
        ["running", f"{load.running:.0f}", f"{load.running_p99:.0f}", f"room {load.room}"],
    ]
    text = table(rows, right=frozenset({1, 2, 3}))
    if pools := answer.pools:
        rows = [
            ["at the peak, in separate pools", "p99", "target"],
            ["TTFT", seconds(pools.ttft_p99), seconds(targets.ttft_p99)],
            ["TPOT", seconds(pools.tpot_p99), seconds(targets.tpot_p99)],
        ]
        text = table(rows, right=frozenset({1, 2}))
    return (
        f"{text}\n\nA day: {day.requests:,.0f} requests, {day.gpu_hours:,.0f} GPU-hours left on, "
        f"{day.gpu_hours_following:,.0f} following the load, {day.utilisation:.0%} of capacity used."
    )


def _money(answer: Answer) -> str:
    price, even = answer.cost, answer.break_even
    assert price is not None
    lines = [
        f"Cost: {price.per_day:,.2f} a day left on, {price.per_day_following:,.2f} following the load; per million "
        f"output tokens {price.per_million_output:.4f} left on, {price.per_million_output_following:.4f} following, "
        f"{price.per_million_output_at_capacity:.4f} with every replica full; {price.per_million_total:.4f} per "
        "million of input and output together."
    ]
    if even:
        share = (
            f"{even.utilisation:.0%} of what the fleet holds" if even.utilisation <= 1 else "more than the fleet holds"
        )
        lines.append(
            f"Hosted: {even.hosted_per_day:,.2f} a day for the same tokens. The fleet costs the same at "
            f"{even.rate:,.1f} requests/s on average, {share}. Cheaper here: {even.cheaper}."
        )
    return "\n".join(lines)


def _alternatives(alternatives: list[Alternative], now: int) -> str:
    rows = [["one change", "GPUs", "", "TTFT p99", "TPOT p99", "what it costs"]]
    for each in alternatives:
        if each.gpus is None:
            rows.append([each.change, "-", "", "", "", each.refusal])
            continue
        change = f"{each.gpus - now:+d}" if each.gpus != now else "="
        rows.append([each.change, str(each.gpus), change, seconds(each.ttft_p99), seconds(each.tpot_p99), each.price])
    return table(rows, right=frozenset({1, 2, 3, 4}))


def published_text(rows: Sequence[Comparison]) -> str:
    """The predicted-against-published table as Markdown, which is also README.md's."""
    lines = [
        "| setting | measure | published | predicted | ratio | source |",
        "|---|---|---:|---:|---:|---|",
    ]
    for row in rows:
        ratio = f"{row.ratio:.2f}" + (" (fitted)" if row.fitted else "")
        lines.append(
            f"| {row.setting} | {row.measure} | {row.published:,.5g} {row.unit} | {row.predicted:,.5g} "
            f"| {ratio} | {row.source} |"
        )
    lines.append("")
    for name, sparse in (("dense", False), ("mixture-of-experts", True)):
        held = [row for row in rows if not row.fitted and row.sparse == sparse]
        low, middle, high = spread(held)
        near = sum(0.8 <= row.ratio <= 1.25 for row in held)
        lines.append(
            f"- {name} models: {near} of {len(held)} held-out rows between 0.80 and 1.25; smallest {low:.2f}, "
            f"geometric mean {middle:.2f}, largest {high:.2f}."
        )
    lines += [
        "",
        *(f"- **{key}**: [{each['title']}]({each['url']}). {each['setting']}." for key, each in sources().items()),
    ]
    return "\n".join(lines)


def seconds(value: float | None) -> str:
    """A time in milliseconds, or "-" for None."""
    if value is None:
        return "-"
    return f"{value * 1000:.1f} ms" if value < 0.1 else f"{value * 1000:,.0f} ms"
