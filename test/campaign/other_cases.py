"""Models of scikit-learn, and exported models after ONNX Runtime's optimizer and quantizers."""

import os

import numpy as np
import onnx


def sklearn_models():
    """Name, estimator, and whether it is trained on classes."""
    import sklearn.ensemble as en
    import sklearn.linear_model as lm
    import sklearn.naive_bayes as nb
    import sklearn.neighbors as ne
    import sklearn.neural_network as nn
    import sklearn.pipeline as pi
    import sklearn.preprocessing as pr
    import sklearn.svm as svm
    import sklearn.tree as tree
    return [
        ("logistic", lm.LogisticRegression(), True), ("linear", lm.LinearRegression(), False),
        ("lasso", lm.Lasso(0.01), False), ("ridge", lm.Ridge(), False), ("sgd", lm.SGDClassifier(), True),
        ("tree", tree.DecisionTreeClassifier(max_depth=5), True),
        ("forest", en.RandomForestClassifier(20, max_depth=6, random_state=0), True),
        ("forest_regressor", en.RandomForestRegressor(20, max_depth=6, random_state=0), False),
        ("extra_trees", en.ExtraTreesClassifier(10, random_state=0), True),
        ("boosting", en.GradientBoostingClassifier(n_estimators=15, random_state=0), True),
        ("hist_boosting", en.HistGradientBoostingRegressor(max_iter=15, random_state=0), False),
        ("bagging", en.BaggingClassifier(n_estimators=5, random_state=0), True),
        ("voting", en.VotingClassifier([("a", lm.LogisticRegression()), ("b", nb.GaussianNB())], voting="soft"), True),
        ("svc", svm.SVC(probability=True, random_state=0), True), ("svr", svm.SVR(), False),
        ("neighbors", ne.KNeighborsClassifier(3), True), ("bayes", nb.GaussianNB(), True),
        ("mlp", nn.MLPClassifier((8,), max_iter=50, random_state=0), True),
        ("pipeline", pi.make_pipeline(pr.StandardScaler(), pr.PolynomialFeatures(2), lm.LogisticRegression()), True),
        ("scalers", pi.make_pipeline(pr.RobustScaler(), pr.MinMaxScaler(), pr.Normalizer(), lm.Ridge()), False),
    ]


def export_sklearn(name, file):
    import sklearn.datasets
    import skl2onnx
    from skl2onnx.common.data_types import FloatTensorType
    _, estimator, classes = next(m for m in sklearn_models() if m[0] == name)
    x, y = sklearn.datasets.make_classification(200, 6, n_informative=4, n_classes=3, random_state=3)
    x = x.astype(np.float32)
    estimator.fit(x, y if classes else x[:, 0] * 2 + x[:, 1])
    options = {id(estimator): {"zipmap": False}} if classes else None
    model = skl2onnx.convert_sklearn(estimator, initial_types=[("x", FloatTensorType([None, 6]))], options=options,
                                     target_opset=18)
    onnx.save(model, file)
    return [{"x": x[:7]}, {"x": x[100:101]}]


class Samples:
    """What static quantization reads to find ranges."""

    def __init__(self, sets):
        self.rest = iter(sets)

    def get_next(self):
        return next(self.rest, None)


def quantized(kind, source, sets, file):
    from onnxruntime import quantization as q
    if kind == "dynamic":
        q.quantize_dynamic(source, file, weight_type=q.QuantType.QInt8)
    elif kind == "dynamic_u8":
        q.quantize_dynamic(source, file, weight_type=q.QuantType.QUInt8, per_channel=True)
    elif kind == "qdq":
        q.quantize_static(source, file, Samples(sets), quant_format=q.QuantFormat.QDQ, per_channel=True)
    elif kind == "qdq16":  # in com.microsoft's domain
        q.quantize_static(source, file, Samples(sets), quant_format=q.QuantFormat.QDQ,
                          activation_type=q.QuantType.QUInt16, extra_options={"UseQDQContribOps": True})
    elif kind == "float16":
        from onnxruntime.transformers.float16 import convert_float_to_float16
        onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True), file)
    elif kind == "qoperator":
        q.quantize_static(source, file, Samples(sets), quant_format=q.QuantFormat.QOperator)
    elif kind == "nbits":
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
        done = MatMulNBitsQuantizer(onnx.load(source), block_size=16)
        done.process()
        onnx.save(done.model.model, file)


def optimized(kind, source, file):
    import onnxruntime as ort
    if kind == "ort":
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = file
        ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    else:
        from onnxruntime.transformers import optimizer
        done = optimizer.optimize_model(source, model_type=kind, num_heads=2, hidden_size=16, opt_level=0)
        if os.path.exists(file):
            os.remove(file)
        done.save_model_to_file(file)


# The kind of change, and the case of which group it is made to.
CHANGES = [
    *[("ort", g, n) for g, n in (("torch", "resnet"), ("torch", "mobilenet"), ("torch", "attention"), ("torch", "vit"),
                                 ("torch", "lstm"), ("transformers", "bert"), ("transformers", "gpt2"),
                                 ("transformers", "llama"), ("transformers", "vit"), ("transformers", "t5_encoder"))],
    *[(k, "transformers", n) for k, n in (("bert", "bert"), ("bert", "roberta"), ("bert", "distilbert"),
                                          ("gpt2", "gpt2"), ("bart", "bart"), ("vit", "vit"))],
    *[("dynamic", g, n) for g, n in (("torch", "mlp"), ("torch", "lstm"), ("torch", "vit"), ("torch", "encoder"),
                                     ("transformers", "bert"), ("transformers", "gpt2"), ("transformers", "vit"),
                                     ("transformers", "vit_edges"))],
    ("dynamic_u8", "transformers", "bert"), ("dynamic_u8", "torch", "mlp"),
    *[("qdq", "torch", n) for n in ("mlp", "lenet", "resnet", "mobilenet", "vit")],
    *[("qoperator", "torch", n) for n in ("mlp", "lenet", "resnet", "mobilenet")],
    ("nbits", "transformers", "llama"), ("nbits", "torch", "mlp"),
    *[("qdq16", "torch", n) for n in ("lenet", "resnet")],
    *[("float16", g, n) for g, n in (("torch", "resnet"), ("torch", "vit"), ("transformers", "bert"))],
]
QUANTIZED = ("dynamic", "dynamic_u8", "qdq", "qdq16", "float16", "qoperator", "nbits")
