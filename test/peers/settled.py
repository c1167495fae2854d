"""test/peers/settled.txt: disagreements that were looked into, with who is right and why.

Entries are separated by empty lines. The first line says which cases one covers,
    OPERATOR ...; PEER or any; CONDITION
in Python over `opset`, `attr(name, default)`, `types` (of inputs and outputs), `shapes`, `arrays` (of
inputs), `refused` (hone gives no result, and this is its message, else ""), `detail` (what differs),
`within_f32` (agrees when f64 is held to the tolerance of f32), `agreed` (peers that agree with hone) and `nan`, `inf`, `empty` (an input
holds one, has no elements). The second says who is right: hone, the peer, `unspecified` (the specification
leaves it open), `either`, or `known` (hone is wrong, and that is known). The rest is the reason, with the
specification's sentence in quotation marks where there is one. Reading checks that quotations stand in
the page of one of the operators, in any version; white space and emphasis do not count.
"""

import functools
import os
import re

import numpy as np

import values
from onnx import defs, helper

RIGHT = ("hone", "peer", "unspecified", "either", "known")


class Entry:
    def __init__(self, text):
        first, second, *rest = text.split("\n")
        operators, self.peer, condition = (part.strip() for part in first.split(";", 2))
        self.operators = set(operators.split())
        self.condition = compile(condition, "settled.txt: " + first, "eval")
        self.right = second.removeprefix("right:").strip()
        self.reason = " ".join(line.strip() for line in rest)
        self.first = first
        if self.right not in RIGHT or not self.reason:
            raise ValueError(f"settled.txt: {first}: needs 'right: {' | '.join(RIGHT)}' and a reason")

    def covers(self, case, peer, refused, detail, within_f32, agreed):
        if case.op not in self.operators or self.peer not in ("any", peer):
            return False
        return bool(eval(self.condition, {"np": np, "agreed": agreed} | facts(case, refused, detail, within_f32)))


def facts(case, refused, detail, within_f32):
    given = list(case.feeds.values()) + list(case.constants.values())
    wide = [a.astype(np.float64) for a, t in given if t in values.FLOATS]
    node = next((n for n in case.model.graph.node if n.op_type == case.op), case.model.graph.node[0])
    attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    attrs = {k: v.decode() if isinstance(v, bytes) else v for k, v in attrs.items()}
    outputs = [values.name_of(o.type.tensor_type.elem_type) for o in case.model.graph.output]
    return {"opset": case.opset, "attr": lambda name, default=None: attrs.get(name, default),
            "types": [t for _, t in given] + outputs, "shapes": [list(a.shape) for a, _ in given],
            "arrays": [a for a, _ in given], "outputs": [o.name for o in case.model.graph.output],
            "refused": refused, "detail": detail, "within_f32": within_f32, "nan": any(np.isnan(a).any() for a in wide),
            "inf": any(np.isinf(a).any() for a in wide), "empty": any(a.size == 0 for a, _ in given)}


def plain(text):
    return re.sub(r"[\s`*]+", " ", text).strip().lower()


def pages(operators):
    """All that the specification says of the operators."""
    out = []
    for schema in defs.get_all_schemas_with_history():
        if schema.name in operators:
            parts = [*schema.inputs, *schema.outputs, *schema.attributes.values()]
            out += [schema.doc or ""] + [p.description or "" for p in parts]
    return plain(" ".join(out))


def false_quotations(entries):
    """Quotations that are none."""
    out = []
    for entry in entries:
        page = pages(entry.operators)
        out += [f"{entry.first}: {q}" for q in re.findall('"([^"]*)"', entry.reason) if plain(q) not in page]
    return out


@functools.cache
def read():
    with open(os.path.join(os.path.dirname(__file__), "settled.txt")) as file:
        text = "\n".join(line for line in file.read().split("\n") if not line.startswith("#"))
    return [Entry(block.strip()) for block in re.split(r"\n\s*\n", text) if block.strip()]
