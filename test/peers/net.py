"""A random network under construction: nodes, weights, and inputs whose sizes are numbers or symbols.

A family is a function that draws a network of one kind (nets_*.py). What it calls `size` is a number in
one network and a symbol in another; a network is run at several values of its symbols.
"""

import hashlib

import numpy as np
import onnx
from onnx import checker, helper, numpy_helper, shape_inference

from case import Draws, Reject

OPSETS = [13, 15, 17, 18, 19, 20, 21, 22, 23]
FLOATS = {np.float32: 8, np.float16: 1, np.float64: 1}


class Net(Draws):
    def __init__(self, family, index, seed, attempt=0):
        digest = hashlib.sha256(f"{seed}:net:{family}:{index}:{attempt}".encode()).digest()
        super().__init__(np.random.default_rng(int.from_bytes(digest[:8], "little")))
        self.style = Draws(np.random.default_rng(int.from_bytes(digest[8:16], "little")))
        self.family, self.index = family, index
        self.opset = self.pick(OPSETS)
        self.openness = self.pick([0, 0.5, 1])  # how many of its sizes are symbols
        self.float = np.float32
        self.sizes, self.inputs, self.nodes, self.weights, self.outputs = {}, {}, [], {}, []
        self.functions, self.domains, self.named = [], {}, 0
        self.names = self.style.pick(["", "node_{}", "/model/layer.{}/op"])
        self.types = {}          # of results that shape inference does not know
        self.step = 0.0          # what one step of a quantized result is worth
        self.off_by_one = False  # integers that are rounded from computed floats
        self.loose = 1           # how often the usual tolerance, where errors grow
        self.unjudged = set()    # outputs that the specification leaves open

    # What families draw.
    def any_float(self):
        """Another float type than f32 in some networks."""
        kinds = list(FLOATS)
        self.float = kinds[self.r.choice(len(kinds), p=np.array(list(FLOATS.values())) / sum(FLOATS.values()))]

    def need_opset(self, low, high=OPSETS[-1]):
        self.opset = self.pick([o for o in OPSETS if low <= o <= high])

    def size(self, name, low=1, high=8):
        is_open = self.chance(self.openness)
        self.sizes[name] = (low, high, None if is_open else self.int(low, high))
        return name if is_open else self.sizes[name][2]

    def input(self, name, dims, type=None, low=None, high=None, make=None):
        """Random numbers, of `low` to `high` if given; or what make(r, shape, sizes) returns."""
        self.inputs[name] = (dims, np.dtype(type or self.float), low, high, make)
        return name

    def number(self, dim, sizes):
        return sizes[dim] if isinstance(dim, str) else dim

    # What the graph holds.
    def name(self, hint="t"):
        self.named += 1
        return f"{hint}{self.named}"

    def const(self, value, type=None):
        name = self.name("c")
        self.weights[name] = np.asarray(value, type)
        return name

    def ints(self, *values):
        return self.const(list(values), np.int64)

    def scalar(self, value):
        return self.const(value, self.float)

    def weight(self, *shape, scale=None, low=None, high=None):
        """Scaled so that results stay near 1; the first axis of a matrix is summed over, and all but the first of others."""
        if low is not None:
            return self.const(self.r.uniform(low, high, shape), self.float)
        fan = shape[0] if len(shape) == 2 else int(np.prod(shape[1:])) if len(shape) > 2 else 10
        return self.const(self.r.normal(0, scale or 1 / np.sqrt(max(1, fan)), shape), self.float)

    def op(self, op_type, *inputs, outputs=1, **attrs):
        names = [self.name() if outputs == 1 else f"{self.name()}_{i}" for i in range(outputs)]
        given = [i if isinstance(i, str) else self.const(i, self.float) for i in inputs]
        attrs = {k: v for k, v in attrs.items() if v is not None}
        if "domain" in attrs:
            self.domains[attrs["domain"]] = 1 if attrs["domain"] != "ai.onnx.ml" else 3
        self.nodes.append(helper.make_node(op_type, given, names, **attrs))
        return names[0] if outputs == 1 else names

    def out(self, *names):
        self.outputs += names

    def reduce(self, op_type, x, axes, keepdims=1):
        if self.opset >= (13 if op_type == "ReduceSum" else 18):
            return self.op(op_type, x, self.ints(*axes), keepdims=keepdims)
        return self.op(op_type, x, axes=list(axes), keepdims=keepdims)

    def split(self, x, axis, parts):
        return self.op("Split", x, self.ints(*parts), outputs=len(parts), axis=axis)

    def shape_of(self, x, *axes):
        """Sizes of some axes, each as an axis of one element."""
        shape = self.op("Shape", x)
        return [self.op("Gather", shape, self.ints(a)) for a in axes]

    def reshape(self, x, *dims):
        """To numbers, and results of shape_of()."""
        if all(isinstance(d, int) for d in dims):
            return self.op("Reshape", x, self.ints(*dims))
        return self.op("Reshape", x, self.op("Concat", *[self.ints(d) if isinstance(d, int) else d for d in dims], axis=0))

    def body(self, build):
        """A graph for an attribute: build() adds its nodes and returns the infos of its inputs and outputs."""
        outer, self.nodes = self.nodes, []
        inputs, outputs = build()
        graph = helper.make_graph(self.nodes, self.name("body"), inputs, outputs)
        self.nodes = outer
        return graph

    def info(self, name, dims, type=None):
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(type or self.float)), dims)

    def dims(self, name):
        """The sizes of a value that shape inference finds, None where it finds none."""
        inferred = shape_inference.infer_shapes(self._model([helper.ValueInfoProto(name=name)]), data_prop=True)
        shape = inferred.graph.output[0].type.tensor_type.shape
        return [d.dim_value if d.HasField("dim_value") else None for d in shape.dim]

    # The model and its runs.
    def _model(self, outputs):
        infos = []
        for name, (dims, type, *_) in self.inputs.items():
            number = onnx.TensorProto.STRING if type == object else helper.np_dtype_to_tensor_dtype(type)
            infos.append(helper.make_tensor_value_info(name, number, dims))
        tensors = [_tensor(n, a) for n, a in self.weights.items()]
        graph = helper.make_graph(self.nodes, "network", infos, outputs, tensors)
        opsets = [helper.make_opsetid("", self.opset)] + [helper.make_opsetid(d, v) for d, v in self.domains.items()]
        model = helper.make_model(graph, opset_imports=opsets, functions=self.functions)
        model.ir_version = max(8, helper.find_min_ir_version_for(opsets[:1]))
        return model

    def model(self):
        """With the types of the results as exporters write them, or without their shapes."""
        bare = self._model([helper.ValueInfoProto(name=n) for n in self.outputs])
        inferred = shape_inference.infer_shapes(bare, check_type=True, strict_mode=True, data_prop=True)
        outputs = [self.types.get(o.name, o) for o in inferred.graph.output]
        if not all(o.type.tensor_type.elem_type for o in outputs):
            raise Reject("the type of an output is not known")
        del bare.graph.output[:]
        bare.graph.output.extend(outputs)
        unknown = [o for o in bare.graph.output if not o.type.tensor_type.HasField("shape")]
        for output in unknown:
            output.type.tensor_type.shape.SetInParent()
        checker.check_model(bare)  # which asks for a shape, and does not look at it
        for output in bare.graph.output if self.chance(0.4) else unknown:
            output.type.tensor_type.ClearField("shape")
        return bare

    def restyle(self, graph):
        """What exporters do differently: weights as nodes, results that nothing uses, names with other characters."""
        if self.style.chance(0.2):
            constants = [helper.make_node("Constant", [], [t.name], value=t) for t in graph.initializer]
            nodes = constants + list(graph.node)
            del graph.node[:], graph.initializer[:]
            graph.node.extend(nodes)
        if self.style.chance(0.2) and self.outputs[0] not in [i.name for i in graph.input]:
            graph.node.append(helper.make_node("Identity", [self.outputs[0]], ["unused"]))
        for i, node in enumerate(graph.node):
            node.name = self.names.format(i)

    def draw(self, count=3):
        """Inputs of `count` runs, the first at the lowest sizes."""
        runs = []
        for i in range(count):
            sizes = {n: fixed if fixed is not None else low if i == 0 else self.int(low, high)
                     for n, (low, high, fixed) in self.sizes.items()}
            runs.append({name: self._array(sizes, *how) for name, how in self.inputs.items()})
        return runs

    def _array(self, sizes, dims, type, low, high, make):
        shape = tuple(self.number(d, sizes) for d in dims)
        if make:
            return np.asarray(make(self.r, shape, sizes), type).reshape(shape)
        if type == bool:
            return self.r.integers(0, 2, shape).astype(bool)
        if type.kind in "iu":
            return self.r.integers(0 if low is None else low, 9 if high is None else high, shape, endpoint=True).astype(type)
        if low is None:
            return np.asarray(self.r.normal(0, 1, shape)).astype(type)
        return np.asarray(self.r.uniform(low, high, shape)).astype(type)


def _tensor(name, array):
    if array.dtype == object:
        return helper.make_tensor(name, onnx.TensorProto.STRING, array.shape, [s.encode() for s in array.reshape(-1)])
    return numpy_helper.from_array(array, name)


def make(family, build, index, seed):
    """The network with this number, its model and its runs; draws that make no valid model are repeated."""
    reason = None
    for attempt in range(30):
        net = Net(family, index, seed, attempt)
        try:
            build(net)
            model = net.model()
            net.restyle(model.graph)
            return net, model, net.draw()
        except (Reject, shape_inference.InferenceError, checker.ValidationError) as e:
            reason = e
    raise Reject(f"{family} {index}: {reason}")
