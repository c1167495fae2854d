"""What is optimized: a model, inputs of some runs, and a judgement of the results of a run."""

import os
import tarfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

import executors
import net
import nets_data
import nets_images
import nets_sequences
import peers
import rows
import settled

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FAMILIES = nets_images.FAMILIES | nets_sequences.FAMILIES | nets_data.FAMILIES
QUANTIZED = ("quant", "qlinear", "qdq", "dynamic", "qoperator", "integer", "qgemm")  # in names of stored models
# By element size: of the largest result, and of each.
TOLERANCE = {2: (1e-2, 2e-2), 4: (1e-4, 1e-3), 8: (1e-8, 1e-7)}


class Subject:
    results = {}  # of peers

    def ask(self, skip, say):
        """The peers, for what is right; say(peer) before each."""

    def tensors(self, run):
        return {name: tensor(name, array) for name, array in self.runs[run].items()}

    def settled_refusal(self, refusal):
        """Why hone may refuse the model, or None."""
        return None

    def given_sizes(self):
        """Options that give open sizes, of models that may need that."""
        return []

    def is_judged(self, run=None):
        """Whether a peer ran the model, or this run."""
        return any(run is None or r[run] is not None for r in self.results.values())


class Random(Subject):
    """A random network, judged by the first peer that runs it."""

    def __init__(self, family, index, seed):
        self.net, self.model, self.runs = net.make(family, FAMILIES[family], index, seed)
        sizes = {n: fixed if fixed is not None else f"{low}..{high}" for n, (low, high, fixed) in self.net.sizes.items()}
        self.text = f"opset {self.net.opset}, {np.dtype(self.net.float).name}, {len(self.net.nodes)} nodes, {sizes}"
        self.results = {}

    def ask(self, skip, say):
        for peer in ("onnxruntime", "reference"):
            if peer not in skip and not self.results:
                self._ask(peer, say)

    def _wider(self, expected):
        """The reference works out parts of networks of f64 in f32, so these are held to the tolerance of f32."""
        is_f64 = np.asarray(expected).dtype == np.float64
        return TOLERANCE[4][0] / TOLERANCE[8][0] if is_f64 and "onnxruntime" not in self.results else 1

    def _may_judge(self, peer):
        """The reference of BatchNormalization before opset 14 normalises with moved statistics, also in inference."""
        return peer != "reference" or self.net.opset >= 14 or all(n.op_type != "BatchNormalization" for n in self.model.graph.node)

    def _ask(self, peer, say):
        if not self._may_judge(peer):
            return
        say(peer)
        results = [self._result(peer, r) for r in self.runs]
        if any(r is not None for r in results):
            self.results[peer] = results

    def _result(self, peer, inputs):
        try:
            return executors.run_arrays(peer, self.model, inputs)
        except Exception:  # whatever a peer raises, it has no result: sizes may not fit a window
            return None

    def wrong(self, run, got, say):
        """What differs from every peer. The reference is asked only if ONNX Runtime differs."""
        if self.results and self._difference(run, got) and "reference" not in self.results:
            self._ask("reference", say)
        return self._difference(run, got)

    def _difference(self, run, got):
        found = [(peer, self._first(got, expected[run])) for peer, expected in self.results.items() if expected[run] is not None]
        return "; ".join(f"{peer}: {d}" for peer, d in found) if found and all(d for _, d in found) else None

    def _first(self, got, expected):
        for output, a, b in zip(self.model.graph.output, got, expected):
            if output.name in self.net.unjudged:
                continue
            if problem := differs(a, b, self.net.step, self.net.off_by_one, self.net.loose * self._wider(b)):
                return f"{output.name}: {problem}"
        return None


class Row(Subject):
    """One operator, as peers.py judges it."""

    def __init__(self, name, index, seed):
        self.case = peers.make(name, index, seed)
        self.model, self.runs = self.case.model, [{n: a for n, (a, _) in self.case.feeds.items()}]
        self.text, self.results = self.case.describe(), {}

    def tensors(self, run):
        return self.case.tensors()

    def ask(self, skip, say):
        for peer, run in peers.PEERS.items():
            if peer in skip:
                continue
            say(peer)
            try:
                self.results[peer] = [run(self.case)]
            except Exception:
                pass

    def _of_peers(self):
        return {peer: results[0] for peer, results in self.results.items()}

    def wrong(self, run, got, say):
        status, differing, _ = peers.judge(self.case, self._of_peers(), got, None, settled.read())
        return "; ".join(f"{peer}: {detail}" for peer, detail, _ in differing) if status == "disagreement" else None

    def given_sizes(self):
        return executors.sizes_given(self.case) if self.case.symbolic and self.case.feeds else []

    def settled_refusal(self, refusal):
        status, *_ = peers.judge(self.case, self._of_peers(), None, refusal, settled.read())
        return status if status in ("unsupported", "both refuse", "settled") else None


class Stored(Subject):
    """A model of test/stored, which holds its inputs and ONNX Runtime's results."""

    def __init__(self, path):
        self.model = onnx.load(path)
        given, expected = {}, {}
        for tensor in self.model.graph.initializer:
            word, _, name = tensor.name.partition(":")
            kind, _, k = word.partition(".")
            if name and kind in ("given", "expected"):
                (given if kind == "given" else expected).setdefault(int(k or 0), {})[name] = numpy_helper.to_array(tensor)
        kept = [t for t in self.model.graph.initializer if ":" not in t.name or not t.name.startswith(("given", "expected"))]
        del self.model.graph.initializer[:]
        self.model.graph.initializer.extend(kept)
        self.runs = [given.get(k, {}) for k in sorted(given)] or [{}]
        self.expected = [expected.get(k, {}) for k in range(len(self.runs))]
        self.text, self.results = os.path.relpath(path, ROOT), {"onnxruntime": expected}
        self.is_half = "float16" in os.path.basename(path)
        self.is_quantized = any(word in os.path.basename(path).lower() for word in QUANTIZED)

    def wrong(self, run, got, say):
        for output, a in zip(self.model.graph.output, got):
            b = self.expected[run].get(output.name)
            if b is not None and (problem := differs(a, b, 0.03 if self.is_quantized else 0, self.is_quantized, 20 if self.is_half else 1)):
                return f"{output.name}: {problem}"
        return None


def differs(a, b, step=0.0, off_by_one=False, loose=1):
    """The first difference in words, or None. NaN agrees with NaN, an infinity with the same one."""
    b = np.asarray(b)
    if a.shape != b.shape:
        return f"shape {list(a.shape)} against {list(b.shape)}"
    if b.dtype.kind in "OSU":
        bad = np.asarray(a.astype(str) != b.astype(str))
    elif b.dtype.kind in "fV":
        x, y = a.astype(np.float64), b.astype(np.float64)
        whole, each = TOLERANCE[min(8, max(2, b.dtype.itemsize))]
        finite = np.abs(y[np.isfinite(y)])
        with np.errstate(all="ignore"):
            same = (x == y) | (np.isnan(x) & np.isnan(y))
            bad = ~(same | (np.abs(x - y) <= step + loose * (whole * finite.max(initial=0) + each * np.abs(y))))
    elif off_by_one and b.dtype != bool:
        bad = np.abs(a.astype(np.float64) - b.astype(np.float64)) > 1
    else:
        bad = np.asarray(a != b)
    if not bad.any():
        return None
    place = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{list(place)} of {b.dtype}{list(b.shape)}: {a[place]!s} against {b[place]!s}, {int(bad.sum())} of {bad.size} differ"


def tensor(name, array):
    """As a file of a tensor."""
    array = np.asarray(array)
    if array.dtype.kind in "OSU":
        return helper.make_tensor(name, onnx.TensorProto.STRING, array.shape, [str(s).encode() for s in array.reshape(-1)])
    return numpy_helper.from_array(array, name)


def row_names():
    table = rows.table()
    return {name: weight for name, (_, weight) in sorted(table.items())}


def suite(cache):
    """Folders of the tests of ONNX's suite, unpacked from shared/onnx once; none without the archive."""
    folder = os.path.join(ROOT, "..", "shared", "onnx")
    archives = sorted(f for f in os.listdir(folder) if f.startswith("onnx_backend_test_data")) if os.path.isdir(folder) else []
    if not archives:
        return []
    target = os.path.join(cache, archives[-1].removesuffix(".tar.xz"))
    if not os.path.isdir(target):
        with tarfile.open(os.path.join(folder, archives[-1])) as archive:
            archive.extractall(target + ".part", filter="data")
        os.rename(target + ".part", target)
    data = os.path.join(target, "onnx/backend/test/data")
    found = [os.path.join(data, kind, test) for kind in sorted(os.listdir(data)) for test in sorted(os.listdir(os.path.join(data, kind)))]
    return [f for f in found if os.path.isfile(os.path.join(f, "model.onnx"))]


def not_passed():
    with open(os.path.join(ROOT, "test", "onnx", "not_passed.txt")) as file:
        return {line.split()[0] for line in file if line.strip() and not line.startswith("#")}


def stored():
    out = []
    for folder in ("test/stored", "test/stored/models"):
        path = os.path.join(ROOT, folder)
        out += [os.path.join(path, f) for f in sorted(os.listdir(path)) if f.endswith(".onnx")]
    return out
