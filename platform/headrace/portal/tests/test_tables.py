"""A table's cells know their columns' headings, which templates write once."""

import re

import pytest
from django.template import Context, Template

HEAD = """<thead><tr><th scope="col">Name</th><th scope="col" class="n">Input <span class="unit">tokens/min</span></th>
<th scope="col">{{ what }}</th><th scope="col"><span class="seen-by-readers">Actions</span></th></tr></thead>"""
ROW = '<tr><th scope="row">a</th><td class="n">1</td><td>{{ value }}</td><td><button>Remove</button></td></tr>'


def drawn(body: str, more: str = "") -> str:
    text = f"{{% load tables %}}{{% table name {more} %}}{HEAD}{body}{{% endtable %}}"
    values = {"name": 'of "A & B"', "what": '"Spent" & held', "value": '<td class="n">'}
    return Template(text).render(Context(values))


def labels(html: str) -> list[str]:
    return re.findall(r'data-label="([^"]*)"', html)


def test_it_labels_cells_by_the_head() -> None:
    html = drawn(f"<tbody>{ROW}{ROW}</tbody>")
    assert labels(html) == ["Input tokens/min", "&quot;Spent&quot; &amp; held"] * 2
    assert 'aria-label="of &quot;A &amp; B&quot;"' in html
    assert html.count("&lt;td class=&quot;n&quot;&gt;</td>") == 2
    assert '<td role="cell"><button>' in html


def test_it_counts_cells_that_are_wider_than_a_column() -> None:
    wide = '<tr><td colspan="2"></td><td>x</td></tr><tr><td>y</td><td colspan="3">z</td></tr>'
    assert labels(drawn(f"<tbody>{wide}</tbody>"))[1:] == ["&quot;Spent&quot; &amp; held", "Name", "Input tokens/min"]
    assert labels(drawn("<tbody><tr><td>a</td><td>b</td><td>c</td><td>d</td><td>too many</td></tr></tbody>"))[3:] == []


def test_it_says_what_a_tables_parts_are_where_they_are_laid_out_as_others() -> None:
    html = drawn(f'<tbody>{ROW}</tbody><tfoot><tr><th scope="row">In all</th></tr></tfoot>')
    roles = {role: html.count(f'role="{role}"') for role in ("table", "rowgroup", "row", "columnheader", "rowheader")}
    assert roles == {"table": 1, "rowgroup": 3, "row": 3, "columnheader": 4, "rowheader": 2}
    scrolls = drawn(f"<tbody>{ROW}</tbody>", 'narrow="scrolls" kind="lines"')
    assert '<table class="is-scrolls lines">' in scrolls
    assert re.findall(r'(?:role|data-label)="(\w+)', scrolls) == ["region"]


def test_it_refuses_a_layout_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="cards or scrolls"):
        drawn("", 'narrow="wide"')


def test_it_lets_a_long_name_break_where_a_reader_would() -> None:
    text = Template("{% load amounts %}{{ name|breakable }}").render(Context({"name": "web/<b> of ann@acme.example"}))
    assert text == "web/<wbr>&lt;b&gt; of ann<wbr>@acme.example"
