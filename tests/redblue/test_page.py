"""The HTML page: self-contained, complete, and safe against names from files."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from pebble import ConvShape, Layer, Network, Skipped
from redblue.analysis import analyse, capacity_curve
from redblue.page import report_page

EVIL = "</script><img src=x onerror=alert(1)>{{ROWS}}\"'&"


@pytest.fixture(scope="module")
def report():
    shape = ConvShape.of((1, 4, 9, 9), (8, 4, 3, 3))
    network = Network(
        "net & co",
        (Layer(EVIL, shape), Layer("plain", replace(shape, batch=0))),
        skipped=(Skipped(EVIL, "Relu", EVIL),),
        failed=(Skipped("bad", "Conv", "why <b>not</b>"),),
    )
    return analyse(network, "1KiB")


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.ids = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href"):
                self.links.append(value)
            if name == "id":
                self.ids.add(value)
            assert not name.startswith("on"), f"{tag} has a handler {name}"


def test_page_is_self_contained_and_names_are_text(report):
    text = report_page(report)
    page = Page(text)
    assert page.links == []
    assert "img" not in page.tags
    assert {"layers", "curve", "table", "data"} <= page.ids
    assert page.tags.count("script") == 3
    assert "{{" not in re.sub(r"<script>.*?</script>", "", text, flags=re.S).replace("{{ROWS}}", "")
    assert "why &lt;b&gt;not&lt;/b&gt;" in text


def test_rows_are_as_wide_as_the_head(report):
    text = report_page(report)
    (table,) = re.findall(r'<table id="table">(.*?)</table>', text, re.S)
    widths = {
        len(re.findall(r"<t[hd][ >]", row)) for row in re.findall(r"<tr.*?</tr>", table, re.S)
    }
    assert len(widths) == 1 and widths.pop() >= 8


def test_control_characters_are_written_out():
    shape = ConvShape.of((1, 4, 9, 9), (8, 4, 3, 3))
    text = report_page(analyse(Network("n", (Layer("a\x1b[31m\x07", shape),)), "1KiB"))
    assert "\x1b" not in text and r"a\x1b[31m\x07" in text


def test_data_holds_every_layer(report):
    text = report_page(report)
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    found = json.loads(data)
    assert [layer["name"] for layer in found["layers"]] == [EVIL, "plain"]
    assert found["selected"] == 0
    first = found["layers"][0]
    at = first["curve"]["capacity"].index(256)
    assert first["curve"]["bound"][at] == first["bound"]
    assert first["curve"]["traffic"][at] == first["traffic"]


def test_curve_falls_to_the_compulsory_words():
    shape = ConvShape.of((1, 4, 9, 9), (8, 4, 3, 3))
    curve = capacity_curve(shape, 1024, halvings=7)
    assert curve[0].capacity_words == 16  # below 11 words nothing fits
    assert [p.traffic_words for p in curve] == sorted(
        (p.traffic_words for p in curve), reverse=True
    )
    assert curve[-1].traffic_words == curve[-1].lower_bound_words == shape.compulsory_words
    assert all(p.lower_bound_words <= p.traffic_words for p in curve)


def test_an_empty_network_has_a_page():
    text = report_page(analyse(Network("none", ()), "1KiB"))
    assert "0 convolutions" in text
