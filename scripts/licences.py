#!/usr/bin/env python3
"""Checks that every dependency may be used under a licence that deny.toml allows.

Without arguments it asks cargo for every dependency of every feature; `--self-test` checks the
evaluation of licence expressions.
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Expression:
    """Evaluates an SPDX expression; `/` between names is the older way to write `OR`."""

    def __init__(self, text: str, allowed: set[str]) -> None:
        self.tokens = re.findall(r"[()/]|[^\s()/]+", text)
        self.allowed = allowed

    def is_allowed(self) -> bool:
        result = self.alternatives()
        if self.tokens:
            raise ValueError(f"unexpected `{self.tokens[0]}`")
        return result

    def take(self, *expected: str) -> bool:
        if self.tokens and self.tokens[0] in expected:
            self.tokens.pop(0)
            return True
        return False

    def alternatives(self) -> bool:
        result = self.conjunction()
        while self.take("OR", "/"):
            # Both sides are always parsed, so the order of the operands matters.
            result = self.conjunction() or result
        return result

    def conjunction(self) -> bool:
        result = self.licence()
        while self.take("AND"):
            result = self.licence() and result
        return result

    def licence(self) -> bool:
        if self.take("("):
            result = self.alternatives()
            if not self.take(")"):
                raise ValueError("a `)` is missing")
            return result
        if not self.tokens or self.tokens[0] in (")", "/", "AND", "OR", "WITH"):
            raise ValueError("a licence is missing")
        name = self.tokens.pop(0)
        if self.take("WITH"):
            if not self.tokens:
                raise ValueError("an exception is missing")
            name = f"{name} WITH {self.tokens.pop(0)}"
        return name in self.allowed


def dependencies() -> list[dict]:
    """Every package that the lock file names for any feature, without the project itself."""
    command = ["cargo", "metadata", "--format-version", "1", "--all-features", "--locked"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"licences: error: `{' '.join(command)}` failed")
    packages = json.loads(done.stdout)["packages"]
    return [package for package in packages if package["source"] is not None]


def problem_of(package: dict, allowed: set[str]) -> str | None:
    text = package["license"]
    if not text:
        return "it names no licence"
    try:
        if Expression(text, allowed).is_allowed():
            return None
    except ValueError as error:
        return f"its licence `{text}` cannot be read: {error}"
    return f"its licence `{text}` is not allowed by deny.toml"


def self_test() -> None:
    allowed = {"MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"}
    cases = {
        "MIT": True,
        "GPL-3.0": False,
        "MIT OR GPL-3.0": True,
        "GPL-3.0 OR MIT": True,
        "MIT/GPL-3.0": True,
        "MIT AND GPL-3.0": False,
        "(MIT OR GPL-3.0) AND Apache-2.0": True,
        "GPL-3.0 OR MIT AND GPL-2.0": False,
        "Apache-2.0 WITH LLVM-exception": True,
        "MIT WITH LLVM-exception": False,
    }
    for text, expected in cases.items():
        assert Expression(text, allowed).is_allowed() is expected, text
    for text in ("", "MIT OR", "(MIT", "MIT MIT", "AND MIT"):
        try:
            Expression(text, allowed).is_allowed()
        except ValueError:
            continue
        raise AssertionError(f"`{text}` was accepted")
    print(f"licences: {len(cases) + 5} expressions are evaluated as they should be")


def main() -> None:
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    if sys.argv[1:]:
        sys.exit(__doc__)
    with open(ROOT / "deny.toml", "rb") as file:
        allowed = set(tomllib.load(file)["licenses"]["allow"])
    packages = dependencies()
    problems = [(package, problem) for package in packages if (problem := problem_of(package, allowed))]
    for package, problem in problems:
        print(f"licences: {package['name']} {package['version']}: {problem}", file=sys.stderr)
    if problems:
        sys.exit(1)
    print(f"licences: all {len(packages)} dependencies have an allowed licence")


if __name__ == "__main__":
    main()
