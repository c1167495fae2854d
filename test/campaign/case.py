"""A case of the campaign: a module and inputs, exported to ONNX with the sizes that its users leave open."""

import dataclasses
import typing
import warnings

import torch


@dataclasses.dataclass
class Case:
    name: str
    module: typing.Callable  # makes it
    inputs: typing.Callable  # of the sizes: a dict from names to tensors
    sizes: list  # tuples of sizes; the first is exported
    open_axes: dict = dataclasses.field(default_factory=dict)  # input: {axis: name}
    by_keyword: bool = False  # inputs are keywords of the module, results have names
    seed: int = 7  # of inputs and weights


def tensors_in(result):
    """The tensors of what a module returns, in order."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, dict):
        result = result.values()
    if result is None or isinstance(result, (int, float, bool)):
        return []
    return [t for part in result for t in tensors_in(part)]


def wrapped(case, names):
    """A module whose forward takes the inputs one by one, which both exporters need."""
    inner = case.module().eval()
    call = ", ".join(f"{n}={n}" if case.by_keyword else n for n in names)
    scope = {"tensors_in": tensors_in}
    exec(f"def forward(self, {', '.join(names)}):\n    return tuple(tensors_in(self.inner({call})))\n", scope)
    module = type("Wrapped", (torch.nn.Module,), {"forward": scope["forward"]})()
    module.inner = inner
    return module.eval()


def export(case, exporter, file):
    """Writes the model; returns its sets of inputs, as dicts of arrays."""
    torch.manual_seed(case.seed)
    sets = [case.inputs(*sizes) for sizes in case.sizes]
    names = list(sets[0])
    module = wrapped(case, names)
    arguments = tuple(sets[0].values())
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if exporter == "dynamo":
            dims = {n: torch.export.Dim.DYNAMIC for axes in case.open_axes.values() for n in axes.values()}
            shapes = {n: {a: dims[d] for a, d in case.open_axes.get(n, {}).items()} or None for n in names}
            torch.onnx.export(module, arguments, file, dynamo=True, input_names=names, dynamic_shapes=shapes,
                              verbose=False, external_data=False)
        else:
            torch.onnx.export(module, arguments, file, dynamo=False, input_names=names,
                              dynamic_axes=case.open_axes, opset_version=17)
    return [{n: t.numpy() for n, t in s.items()} for s in sets]
