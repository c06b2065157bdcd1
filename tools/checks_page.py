"""Write the rules into docs/reference/checks.md: a section each, between the two marks that stand there.

python tools/checks_page.py
"""

from __future__ import annotations

from pathlib import Path

from commlens import analysis, neuron
from commlens.views import rule_section

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "checks.md"
BEGIN = "<!-- the rules, written by tools/checks_page.py -->\n"
END = "<!-- the end of the rules -->\n"
PARTS = (("Rules about XLA", analysis.RULES), ("Rules about Neuron", neuron.RULES))


def with_rules(page: str) -> str:
    """Return the page with the sections of all rules between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    sections = [f"## {title}\n\n" + "\n".join("".join(rule_section(rule)) for rule in rules) for title, rules in PARTS]
    return f"{before}{BEGIN}\n" + "\n".join(sections) + f"\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_rules(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
