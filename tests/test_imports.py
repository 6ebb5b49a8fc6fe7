"""Imports between modules: no circles, and the contracts of pyproject.toml hold."""

import subprocess
import sys

import grimp
import networkx

from tests.support.projects import REPOSITORY


def test_no_module_imports_itself_through_others():
    graph = grimp.build_graph("resources", "retrico_assets", exclude_type_checking_imports=True)
    imports = networkx.DiGraph()
    for module in graph.modules:
        imports.add_edges_from((module, imported) for imported in graph.find_modules_directly_imported_by(module))
    circles = [sorted(circle) for circle in networkx.strongly_connected_components(imports) if len(circle) > 1]
    assert imports.number_of_edges() > 500
    assert circles == []


def test_the_import_contracts_hold():
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 broken" in run.stdout
