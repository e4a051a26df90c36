"""The table of constructs in docs/control_flow.md is the table of what is tested."""

from pathlib import Path

from control_programs import CASES

PAGE = Path(__file__).parents[2] / "docs" / "control_flow.md"


def table() -> str:
    lines = ["| construct | eager | compiled | gradient |", "|---|---|---|---|"]
    for case in CASES:
        lines.append(f"| {case.name} | yes | yes | {'yes' if case.gradient else 'no'} |")
    return "\n".join(lines)


def test_the_page_lists_every_construct():
    assert table() in PAGE.read_text(encoding="utf-8"), f"put this into {PAGE.name}:\n{table()}"
