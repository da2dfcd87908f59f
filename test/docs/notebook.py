"""Runs the code cells of a notebook in order, in one namespace, and prints the notebook with outputs.

A cell shows what it prints and its last expression, as Jupyter does: a text, and a table in HTML or
a picture in SVG where the value has one. The first cell that fails ends the run.
"""

import ast
import contextlib
import io
import json
import sys
import warnings

# The service of the tests converts by sample rates, and says so.
warnings.filterwarnings("ignore", message=".* sample_rates ")


def lines(text):
    return text.splitlines(keepends=True)


def shown(value, count):
    data = {}
    for kind, method in (("text/html", "_repr_html_"), ("image/svg+xml", "_repr_svg_")):
        if hasattr(value, method):
            data[kind] = lines(getattr(value, method)())
    if "image/svg+xml" not in data:
        data["text/plain"] = lines(repr(value))
    return {"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"}


def run(source, names, count):
    tree, last = ast.parse(source), None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    outputs, printed = [], io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {count}", "exec"), names)
        value = last and eval(compile(last, f"cell {count}", "eval"), names)
    if printed.getvalue():
        text = lines(printed.getvalue())
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        outputs.append(shown(value, count))
    return outputs


with open(sys.argv[1], encoding="utf-8") as file:
    notebook = json.load(file)
names, count = {"__name__": "__main__"}, 0
for cell in notebook["cells"]:
    if cell["cell_type"] == "code":
        count += 1
        cell["execution_count"] = count
        cell["outputs"] = run("".join(cell["source"]), names, count)
json.dump(notebook, sys.stdout, ensure_ascii=False, indent=1)
