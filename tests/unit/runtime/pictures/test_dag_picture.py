"""Pictures of window DAGs, read back by the real readers of their languages (DAG-12)."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import mermaidx
import pydot
import pytest

from interlock.api.session.v1 import session_pb2
from interlock.runtime.pictures import picture as dag_picture
from tests.support.texts.dags import appendix_a, troubled, window

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:pydot")  # its own use of pyparsing

NASTY = 'x"]; y --> z %% <script>alert(1)</script> & #35; `q` \\ {{ }} |a| ]]> é'
CONTROL = "a\nb\x1b[2J\u202ec"


def svg_of(mermaid: str) -> str:
    """Return the picture that Mermaid itself makes; it raises for a text that is not Mermaid."""
    found = mermaidx.render(mermaid).svg()
    return found if isinstance(found, str) else found.decode()


def texts(svg: str) -> list[str]:
    return [" ".join("".join(node.itertext()).split()) for node in ET.fromstring(svg).iter()]


def labels(graph: pydot.Graph) -> dict[str, str]:
    nodes = [node for cluster in graph.get_subgraphs() for node in cluster.get_nodes()]
    return {node.get_name(): node.get_label() for node in nodes}


def parsed(sessions) -> pydot.Graph:
    [graph] = pydot.graph_from_dot_data(dag_picture.dot(sessions))
    return graph


APPENDIX_A = """\
Window 1 [root, LINEAR, Quality=A, Risk=LOW, Budget=1.00]
├──► Window 2a [FAN_OUT, Quality=A, Risk=LOW, Budget=0.95]
│         │
│         └──► Window 3a [LINEAR, Quality=B, Risk=HIGH, Budget=0.80]
├──► Window 2b [FAN_OUT, Quality=A, Risk=MEDIUM, Budget=0.90]
└──► Window 2c [FAN_OUT, Quality=B, Risk=LOW, Budget=0.95]

         Window 3a ──┐
         Window 2b ──┼──► Window 4 [FAN_IN, Quality=B, Risk=MEDIUM, Budget=0.80]
         Window 2c ──┘
"""


@pytest.mark.req("DAG-12")
def test_the_text_is_appendix_a_line_by_line():
    """SPEC-004 Appendix A as written there: the tree, the join, the quality history and the budgets."""
    text = dag_picture.text([appendix_a()])

    assert APPENDIX_A in text
    assert "\nQualityHistory: A, [A,A,B], [B], B\n" in text
    assert "\nSafety Budget:  1.00 → [0.95, 0.90, 0.95] → [0.80] → 0.80\n" in text
    assert "  W4: sha256:" in text
    assert text.index("after W3a, W2b, W2c") > text.index("after W2a")


@pytest.mark.req("DAG-12")
def test_what_went_wrong_is_said_in_words():
    """FAILED, HALTED and HELD have a mark and their name; a failed window has no budget, seal or quality."""
    text = dag_picture.text(troubled())

    assert "└──► Window 2b [◆ HELD FAN_OUT, Quality=B, Risk=HIGH, Budget=0.48]" in text
    assert "├──► Window 2a [✗ FAILED FAN_OUT]" in text
    assert "Window 1 [■ HALTED root, LINEAR, Quality=C, Risk=CRITICAL, Budget=0.08]" in text
    assert "W2a:" not in text
    assert "delegated by crp_sess_root" in text
    assert "(no window yet)" in text


@pytest.mark.req("DAG-12")
@pytest.mark.parametrize(
    ("count", "arrow"),
    [(2, "Window 2b ──┴──► Window 3"), (4, "Window 2c ──┼──► Window 3"), (5, "Window 2c ──┼──► Window 3")],
)
def test_a_fan_in_of_any_width_joins_in_one_line(count, arrow):
    """And what follows it stands below its name."""
    siblings = [window(f"w2{n}", 2, "FAN_OUT", "w1", "A", "LOW", 90, timestamp=f"t{n}") for n in range(count)]
    join = window("w3", 3, "FAN_IN", " ".join(one.window_id for one in siblings), "A", "LOW", 90)
    after = window("w4", 4, "LINEAR", "w3", "A", "LOW", 90)
    session = session_pb2.Session(windows=[window("w1", 1, "LINEAR", "", "A", "LOW", 100), *siblings, join, after])

    text = dag_picture.text([session])

    assert arrow in text
    assert text.count("──┤") == max(count - 3, 0)
    assert "\nWindow 3\n└──► Window 4 [LINEAR" in text


def test_a_long_path_stays_on_the_screen():
    """Fifty windows in a row stand in one column, and branches beside them where they begin."""
    windows = [window(f"w{n}", n, "LINEAR", f"w{n - 1}" if n > 1 else "", "A", "LOW", 90) for n in range(1, 51)]

    windows += [window(n, 11, "BRANCH", "w10", "A", "LOW", 90) for n in ("x", "y")]
    windows.append(window("z", 12, "LINEAR", "x", "A", "LOW", 90))

    lines = dag_picture.text([session_pb2.Session(windows=windows)]).splitlines()

    assert max(len(line) for line in lines if "Window " in line) < 80
    assert sum("Window " in line for line in lines) == 53
    at = lines.index("▼ Window 10 [LINEAR, Quality=A, Risk=LOW, Budget=0.90]")
    assert [line.partition(" [")[0] for line in lines[at + 1 : at + 4]] == [
        "├──► Window 11", "│ ▼ Window 12", "│ ▼ Window 13",
    ]  # fmt: skip
    assert "├──► Window 11a [BRANCH, Quality=A, Risk=LOW, Budget=0.90]" in lines
    assert "│ ▼ Window 12a [LINEAR, Quality=A, Risk=LOW, Budget=0.90]" in lines


def test_thousands_of_windows_are_drawn_in_every_form():
    """No recursion, whatever the depth."""
    windows = [window(f"w{n}", n, "LINEAR", f"w{n - 1}" if n > 1 else "", "A", "LOW", 90) for n in range(1, 2001)]
    windows += [window(f"v{n}", 2001, "FAN_OUT", "w2000", "A", "LOW", 90) for n in range(1000)]
    session = session_pb2.Session(windows=windows)

    for draw in (dag_picture.text, dag_picture.mermaid, dag_picture.dot, dag_picture.svg, dag_picture.as_json):
        assert len(draw([session])) > 100_000


@pytest.mark.req("DAG-12")
def test_mermaid_draws_every_window_frame_and_delegation():
    """By Mermaid's own reader: names, risk, tier, budget, pattern, status, and what was transferred."""
    found = texts(svg_of(dag_picture.mermaid([appendix_a(), *troubled()])))

    for expected in (
        "Window 2a FAN_OUT, Quality=A, Risk=LOW, Budget=0.95 push",
        "Window 2a FAILED FAN_OUT push",
        "Window 1 HALTED root, LINEAR, Quality=C, Risk=CRITICAL, Budget=0.08 push",
        "crp_sess_legal, specialist_legal, depth 1, HALTED, Budget=0.08, Charged=0.00, OPEN",
        "SUMMARY, 120 tokens",
        "delegates to specialist_legal",
        "no window yet",
    ):
        assert any(expected.replace(" ", "") == text.replace(" ", "") for text in found), expected


@pytest.mark.req("DAG-12")
def test_statuses_have_shapes_of_their_own():
    """Not colours alone: four shapes in Mermaid, in DOT and in the SVG."""
    mermaid, dot, svg = (draw(troubled()) for draw in (dag_picture.mermaid, dag_picture.dot, dag_picture.svg))

    assert [mark in mermaid for mark in ('["Window', '{{"Window', '(["Window', '[/"Window')] == [True] * 4
    assert [
        mark in dot for mark in ("shape=box, style=filled", "shape=octagon", "filled,rounded", "shape=invtrapezium")
    ] == [True] * 4
    points = [len(node.get("points").split()) for node in ET.fromstring(svg).findall(".//{*}polygon")]
    assert sorted(points) == [4, 4, 6, 8]


@pytest.mark.req("DAG-12")
def test_dot_has_a_cluster_per_session_and_an_edge_per_parent():
    """By a reader of DOT."""
    graph = parsed([appendix_a(), *troubled()])
    clusters = graph.get_subgraphs()

    assert [cluster.get_name() for cluster in clusters] == [f"cluster_s{n}" for n in range(4)]
    assert [len(cluster.get_edges()) for cluster in clusters] == [7, 2, 0, 0]
    assert [(e.get_source(), e.get_destination(), e.get("ltail"), e.get("lhead")) for e in graph.get_edges()] == [
        ("s1w0", "s2w0", "cluster_s1", "cluster_s2"),
        ("s1w0", "s3e", "cluster_s1", "cluster_s3"),
    ]
    assert labels(graph)["s0w5"] == '"Window 4\\nFAN_IN, Quality=B, Risk=MEDIUM, Budget=0.80\\npush"'


@pytest.mark.req("DAG-12")
@pytest.mark.parametrize("name", [NASTY, CONTROL, '"' * 40, "\\", "end", "subgraph", "%%{init: {}}%%", "a" * 5000])
def test_no_label_becomes_markup(name):
    """Whatever an agent is called, the graph has the same nodes and edges, and the name stands in a label."""
    plain, nasty = troubled(), troubled(name)

    assert labels(parsed(nasty)).keys() == labels(parsed(plain)).keys()
    assert len(parsed(nasty).get_edges()) == 2
    own = ET.fromstring(dag_picture.svg(nasty))
    assert [node.tag for node in own.iter()] == [node.tag for node in ET.fromstring(dag_picture.svg(plain)).iter()]
    for draw in (dag_picture.text, dag_picture.mermaid, dag_picture.dot, dag_picture.svg):
        assert not {"\x1b", "\u202e"} & set(draw(nasty))
    assert json.loads(dag_picture.as_json(nasty))["sessions"][1]["agent_type"] == name


@pytest.mark.req("DAG-12")
def test_no_label_becomes_mermaid():
    """By its own reader: as many nodes as ever, and nothing to run."""
    drawn = svg_of(dag_picture.mermaid(troubled(NASTY + CONTROL + "%%{init: {}}%% end subgraph")))

    assert "<script" not in drawn
    assert len(set(re.findall(r'id="[^"]*flowchart-(s\d+[we]\d*)-', drawn))) == 5


@pytest.mark.req("DAG-12")
def test_json_has_windows_edges_and_delegations():
    """For programs: integers in millionths, names as drawn, ids as stored."""
    found = json.loads(dag_picture.as_json([appendix_a(), *troubled()]))
    join = found["sessions"][0]["windows"][5]

    assert [w["name"] for w in found["sessions"][0]["windows"]] == ["1", "2a", "2b", "2c", "3a", "4"]
    assert (join["parent_ids"], join["safety_budget_micros"]) == (["w3a", "w2b", "w2c"], 800_000)
    assert join["edges"][0] == {
        "source_id": "w3a", "target_id": "w4", "transfer_type": "SUMMARY", "transferred_tokens": 120, "summary_hash": None,
    }  # fmt: skip
    assert found["delegations"] == [
        {"parent_session_id": "crp_sess_root", "child_session_id": "crp_sess_legal", "agent_type": "specialist_legal"},
        {"parent_session_id": "crp_sess_root", "child_session_id": "crp_sess_new", "agent_type": ""},
    ]


@pytest.mark.req("DAG-12")
def test_the_svg_shows_every_window_inside_its_frame():
    """Boxes lie inside their session's frame, and no two of one session overlap."""
    picture = ET.fromstring(dag_picture.svg([appendix_a()]))
    frame = next(node for node in picture.findall(".//{*}rect") if node.get("rx"))
    left, top, wide, high = (float(frame.get(name)) for name in ("x", "y", "width", "height"))
    boxes = [
        [tuple(map(float, p.split(","))) for p in n.get("points").split()] for n in picture.findall(".//{*}polygon")
    ]
    corners = [(min(x for x, _ in b), min(y for _, y in b), max(x for x, _ in b), max(y for _, y in b)) for b in boxes]

    assert len(corners) == 6
    assert all(left < x0 and x1 < left + wide and top < y0 and y1 < top + high for x0, y0, x1, y1 in corners)
    apart = [
        a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1] for a in corners for b in corners if a is not b
    ]
    assert all(apart)


def test_siblings_beyond_z_get_two_letters():
    """A fan-out may be 1,000 wide."""
    siblings = [window(f"v{n:03}", 2, "FAN_OUT", "w1", "A", "LOW", 90, timestamp="t") for n in range(28)]
    session = session_pb2.Session(windows=[window("w1", 1, "LINEAR", "", "A", "LOW", 100), *siblings])

    names = [w["name"] for w in json.loads(dag_picture.as_json([session]))["sessions"][0]["windows"]]

    assert (names[1], names[26], names[27], names[28]) == ("2a", "2z", "2aa", "2ab")


def test_no_session_is_an_empty_picture():
    """Still a picture in every form."""
    assert svg_of(dag_picture.mermaid([]))
    assert parsed([]).get_subgraphs() == []
    assert ET.fromstring(dag_picture.svg([])).tag.endswith("svg")
    assert json.loads(dag_picture.as_json([])) == {"sessions": [], "delegations": []}
