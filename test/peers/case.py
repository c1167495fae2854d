"""One model with its inputs, made from the row of its operator and what the schema says."""

import hashlib

import numpy as np
from onnx import AttributeProto, TensorProto, checker, defs, helper, numpy_helper, shape_inference

import values

MAX_OPSET = {"": 28, "ai.onnx.ml": 5}
# For attributes that a row says nothing of, by name.
ATTRS = {
    "alpha": [0.1, 0.5, 1.0, 2.0], "beta": [0.2, 0.5, 1.0], "gamma": [0.5, 1.05], "bias": [0.0, 0.5, 1.0],
    "lambd": [0.0, 0.5, 1.0], "epsilon": [1e-5, 1e-3, 0.1], "keepdims": [0, 1], "fmod": [0, 1],
    "select_last_index": [0, 1], "detect_negative": [0, 1], "detect_positive": [0, 1], "exclusive": [0, 1],
    "reverse": [0, 1], "transA": [0, 1], "transB": [0, 1], "approximate": ["none", "tanh"],
    "noop_with_empty_axes": [0, 1], "periodic": [0, 1], "upper": [0, 1], "saturate": [0, 1],
    "align_corners": [0, 1], "sorted": [1], "largest": [0, 1], "p": [1, 2, 3], "round_mode": [],
    "count_include_pad": [0, 1], "ceil_mode": [0, 1], "storage_order": [0, 1], "interleaved": [0, 1],
    "reduction": ["none", "mean", "sum"], "ignore_index": [-1, 0, 1], "stash_type": [1],
    "is_causal": [0, 1], "softcap": [0.0, 2.0], "scale": [0.3, 1.0], "momentum": [0.9, 0.5],
    "linear_before_reset": [0, 1], "input_forget": [0, 1], "direction": [], "layout": [0, 1],
    "max_skip_count": [0, 1, 2],
}


class Reject(Exception):
    """The draw makes no valid model; another is drawn."""


class Draws:
    def __init__(self, r):
        self.r = r

    def chance(self, p):
        return bool(self.r.random() < p)

    def pick(self, items):
        items = list(items)
        return items[int(self.r.integers(len(items)))]

    def int(self, low, high):
        return int(self.r.integers(low, high, endpoint=True))


class Case(Draws):
    def __init__(self, op, index, seed, attempt, domain=""):
        digest = hashlib.sha256(f"{seed}:{domain}:{op}:{index}:{attempt}".encode()).digest()
        super().__init__(np.random.default_rng(int.from_bytes(digest[:8], "little")))
        self.op, self.index, self.domain = op, index, domain
        self._pick_opset()
        self.attrs, self.inputs, self.nodes, self.bound = {}, {}, [], {}
        self.feeds, self.constants, self.outputs = {}, {}, []
        # Few operators say what NaN means to them: only rows that ask for it get it.
        self.flavour = self.pick(["plain"] * 5 + ["ties"] * 3 + ["extremes"] * 2)
        self.mode = self.pick(["usual"] * 6 + ["folded"] * 2 + ["runtime"] * 2)
        self.symbolic = self.chance(0.15)
        self.zero_share = self.pick([0, 0, 0, 0, 0.25])
        self.exact = False  # of floats as well: the operator moves or selects elements
        self.sums = False   # results are sums that may cancel
        self.off_by_one = False  # integers that are rounded quotients of computed floats
        self.variadic_outputs = None
        self.drop_outputs = ()
        self.own_nodes = False

    def _pick_opset(self):
        highest = MAX_OPSET[self.domain]
        versions = sorted({s.since_version for s in defs.get_all_schemas_with_history()
                           if s.name == self.op and s.domain == self.domain})
        usable = [v for v in versions if v <= highest and not defs.get_schema(self.op, v, self.domain).deprecated]
        usable = [v for v in usable if v > 1 or len(usable) == 1] or usable  # version 1 had no broadcasting
        if not usable:
            raise Reject("newer than the opsets that hone reads")
        self.version = usable[-1] if self.r.random() < 0.5 else usable[self.r.integers(len(usable))]
        after = [v for v in versions if v > self.version]
        last = min(highest, after[0] - 1 if after else highest)
        self.opset = int(self.r.integers(self.version, last, endpoint=True))
        self.schema = defs.get_schema(self.op, self.opset, self.domain)

    # What rows draw with.
    def shape(self, low=0, high=4, most=5):
        out = []
        for _ in range(self.int(low, high)):
            zero = self.zero_share and self.chance(self.zero_share)
            out.append(0 if zero else 1 if self.chance(0.2) else self.int(2, most))
        return out

    def axis(self, rank):
        if rank == 0:
            raise Reject("no axis")
        axis = self.int(0, rank - 1)
        return axis - rank if self.opset >= 11 and self.chance(0.4) else axis

    def axes(self, rank, low=1):
        chosen = self.r.permutation(rank)[:self.int(min(low, rank), rank)]
        return [int(a) - (rank if self.opset >= 11 and self.chance(0.3) else 0) for a in chosen]

    def broadcast(self, count, rank=4):
        """Shapes of `count` operands that broadcast to one."""
        full, out = self.shape(0, rank), []
        for _ in range(count):
            if self.opset < 7:
                out.append(full)
                continue
            part = [1 if self.chance(0.25) else n for n in full]
            out.append(part[self.int(0, len(part)):] if self.chance(0.3) else part)
        return out

    # What the schema says.
    def has(self, attr):
        return attr in self.schema.attributes

    def takes(self, name):
        return any(i.name == name for i in self.schema.inputs)

    def types(self, type_str, among=None):
        for constraint in self.schema.type_constraints:
            if constraint.type_param_str == type_str:
                allowed = constraint.allowed_type_strs
                break
        else:
            allowed = [type_str]
        names = [t[7:-1] for t in allowed if t.startswith("tensor(")]
        return [n for n in values.TYPES if n in names and (among is None or n in among)]

    def type(self, type_str, among=None):
        """The type a parameter of the schema stands for in this case."""
        if type_str not in self.bound:
            names = self.types(type_str, among)
            if not names:
                raise Reject(f"no type for {type_str}")
            weights = np.array([values.WEIGHTS.get(n, 1) for n in names], float)
            self.bound[type_str] = names[self.r.choice(len(names), p=weights / weights.sum())]
        return self.bound[type_str]

    def input_type(self, name):
        formal = next(i for i in self.schema.inputs if i.name == name)
        return self.type(formal.type_str)

    # What rows say.
    def attr(self, name, value):
        if self.has(name):
            self.attrs[name] = value

    def x(self, name, array, parameter=False):
        """Gives an input; a parameter (axes, sizes) is a constant of the model as a rule."""
        many = array if isinstance(array, list) else [array]
        self.inputs[name] = [self.feed(a, parameter) for a in many]

    def feed(self, array, parameter=False, type_name=None):
        name = f"x{len(self.feeds) + len(self.constants)}"
        array = np.asarray(array)
        constant = self.mode == "folded" or (parameter and self.mode == "usual") or \
            (not parameter and self.chance(0.1))
        (self.constants if constant else self.feeds)[name] = (array, type_name or self.type_name(array))
        return name

    @staticmethod
    def type_name(array):
        return "string" if array.dtype == object else values.name_of(helper.np_dtype_to_tensor_dtype(array.dtype))

    def draw(self, type_name, shape, flavour=None, **between):
        flavour = flavour or self.flavour
        if flavour == "extremes" and self.sums:
            flavour = "plain" if values.is_integer(type_name) else "specials"
        return values.array(self.r, type_name, shape, flavour, **between)

    def data(self, name, shape, **how):
        array = self.draw(self.input_type(name), shape, **how)
        self.x(name, array)
        return array

    def ints(self, name, numbers, parameter=True):
        """An attribute in old versions and an input in new ones, or either."""
        if self.has(name):
            self.attrs[name] = numbers
        elif self.takes(name):
            self.x(name, np.asarray(numbers, dtype=values.numpy_type(self.input_type(name))), parameter)

    def node(self, op, inputs, outputs, **attrs):
        self.nodes.append(helper.make_node(op, inputs, outputs, **attrs))

    def fill_attributes(self):
        for name, attribute in self.schema.attributes.items():
            if name in self.attrs or name not in ATTRS or not ATTRS[name] or self.chance(0.35):
                continue
            value = self.pick(ATTRS[name])
            if attribute.type == AttributeProto.FLOAT:
                value = float(value)
            self.attrs[name] = value
        self.attrs = {k: v for k, v in self.attrs.items() if v is not None and not isinstance(v, list) or v}

    # The model.
    def build(self):
        if not self.own_nodes:
            self.fill_attributes()
            names = []
            for formal in self.schema.inputs:
                names += self.inputs.get(formal.name, [""])
            while names and not names[-1]:
                names.pop()
            self.nodes.insert(0, helper.make_node(self.op, names, self._output_names(),
                                                  domain=self.domain, **self.attrs))
        graph = helper.make_graph(self.nodes, "case", self._graph_inputs(),
                                  [helper.ValueInfoProto(name=n) for n in self.outputs],
                                  [self._tensor(n, *v) for n, v in self.constants.items()])
        opsets = [helper.make_opsetid("", self.opset if not self.domain else 20)]
        if self.domain:
            opsets.append(helper.make_opsetid(self.domain, self.opset))
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = 4 if self.opset < 9 and not self.domain else max(4, helper.find_min_ir_version_for(opsets))
        return self._declare_outputs(model)

    def _output_names(self):
        names = []
        for formal in self.schema.outputs:
            if self.variadic_outputs and formal.option == defs.OpSchema.FormalParameterOption.Variadic:
                names += [f"y{i}" for i in range(self.variadic_outputs)]
                continue
            optional = formal.option == defs.OpSchema.FormalParameterOption.Optional
            left_out = formal.name in self.drop_outputs or (optional and names and self.chance(0.4))
            names.append("" if left_out else f"y{len(names)}")
        while len(names) > 1 and not names[-1]:
            names.pop()
        self.outputs = [n for n in names if n]
        return names

    def _graph_inputs(self):
        out = []
        for name, (array, type_name) in self.feeds.items():
            dims = [f"{name}_{i}" if self.symbolic and n > 0 else n for i, n in enumerate(array.shape)]
            out.append(helper.make_tensor_value_info(name, values.number(type_name), dims))
        return out

    @staticmethod
    def _tensor(name, array, type_name):
        if type_name == "string":
            flat = [s.encode() for s in array.reshape(-1)]
            return helper.make_tensor(name, TensorProto.STRING, array.shape, flat)
        return numpy_helper.from_array(array, name)

    def _declare_outputs(self, model):
        """The types of the outputs, with open shapes, from shape inference. The ranks are left open
        too, so that nothing but the operator tells them."""
        inferred = shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        del model.graph.output[:]
        for output in inferred.graph.output:
            if not output.type.HasField("tensor_type") or not output.type.tensor_type.elem_type:
                raise Reject("the type of an output is not known")
            model.graph.output.append(helper.make_tensor_value_info(
                output.name, output.type.tensor_type.elem_type, []))
        checker.check_model(model)  # which asks for a shape, and does not look at it
        for output in model.graph.output:
            output.type.tensor_type.ClearField("shape")
        return model

    def tensors(self):
        return {n: self._tensor(n, *v) for n, v in self.feeds.items()}

    def describe(self):
        parts = [f"{self.op}-{self.opset}"]
        parts += [f"{k}={v}" for k, v in sorted(self.attrs.items())
                  if not isinstance(v, AttributeProto) and not hasattr(v, "ListFields")]
        parts += [f"{n}:{t}{list(a.shape)}" + ("=" + str(a.tolist()) if a.size <= 6 else "")
                  for n, (a, t) in self.feeds.items()]
        parts += [f"const {n}:{t}{list(a.shape)}" + ("=" + str(a.tolist()) if a.size <= 6 else "")
                  for n, (a, t) in self.constants.items()]
        return " ".join(parts)


def make(op, index, seed, row, domain=""):
    """The case with this number; draws that make no valid model are repeated."""
    reason = None
    for attempt in range(30):
        try:
            case = Case(op, index, seed, attempt, domain)
            row(case)
            case.model = case.build()
            if not case.outputs:
                raise Reject("no outputs")
            return case
        except (Reject, shape_inference.InferenceError, checker.ValidationError) as e:
            reason = e
    raise Reject(f"{op} {index}: {reason}")
