"""Models of scikit-learn as skl2onnx writes them, fitted to small data at random."""

import warnings

import numpy as np
from skl2onnx import to_onnx
from sklearn import cluster, discriminant_analysis, ensemble, linear_model, naive_bayes, neighbors, neural_network
from sklearn import decomposition, feature_selection, impute, pipeline, preprocessing, svm, tree

warnings.filterwarnings("ignore")
RANDOM = np.random.default_rng(2)
X = RANDOM.standard_normal((60, 4)).astype(np.float32)
NUMBER = (X @ [1.0, -2.0, 0.5, 0.0] + X[:, 0] * X[:, 1]).astype(np.float32)
TWO = (NUMBER > 0).astype(np.int64)
THREE = np.digitize(NUMBER, [-1, 1]).astype(np.int64)
NAMES = np.array(["low", "middle", "high"])[THREE]
HOLES = np.where(RANDOM.random(X.shape) < 0.2, np.nan, X).astype(np.float32)


def models():
    yield "LinearRegression", linear_model.LinearRegression().fit(X, NUMBER), X
    yield "LinearRegression_two_targets", linear_model.LinearRegression().fit(X, X[:, :2] + 1), X
    yield "LogisticRegression", linear_model.LogisticRegression().fit(X, TWO), X
    yield "LogisticRegression_names", linear_model.LogisticRegression().fit(X, NAMES), X
    yield "SGDClassifier", linear_model.SGDClassifier(loss="log_loss", random_state=0).fit(X, THREE), X
    yield "RidgeClassifier", linear_model.RidgeClassifier().fit(X, TWO), X
    yield "DecisionTreeClassifier", tree.DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, TWO), X
    yield "DecisionTreeRegressor", tree.DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, NUMBER), X
    forest = ensemble.RandomForestClassifier(n_estimators=5, max_depth=4, random_state=0)
    yield "RandomForestClassifier", forest.fit(X, THREE), X
    forest = ensemble.RandomForestClassifier(n_estimators=5, max_depth=4, random_state=0)
    yield "RandomForestClassifier_two", forest.fit(X, TWO), X
    forest = ensemble.RandomForestRegressor(n_estimators=5, max_depth=4, random_state=0)
    yield "RandomForestRegressor", forest.fit(X, NUMBER), X
    boosted = ensemble.GradientBoostingClassifier(n_estimators=6, max_depth=3, random_state=0)
    yield "GradientBoostingClassifier", boosted.fit(X, TWO), X
    boosted = ensemble.GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0)
    yield "GradientBoostingClassifier_three", boosted.fit(X, THREE), X
    boosted = ensemble.GradientBoostingRegressor(n_estimators=6, max_depth=3, random_state=0)
    yield "GradientBoostingRegressor", boosted.fit(X, NUMBER), X
    yield "AdaBoostClassifier", ensemble.AdaBoostClassifier(n_estimators=4, random_state=0).fit(X, THREE), X
    yield "SVC_two", svm.SVC().fit(X, TWO), X
    yield "SVC_two_chances", svm.SVC(probability=True, random_state=0).fit(X, TWO), X
    yield "SVC_three", svm.SVC(kernel="poly", degree=2).fit(X, THREE), X
    yield "SVC_linear", svm.SVC(kernel="linear").fit(X, THREE), X
    yield "LinearSVC", svm.LinearSVC().fit(X, THREE), X
    yield "SVR", svm.SVR().fit(X, NUMBER), X
    yield "SVR_sigmoid", svm.SVR(kernel="sigmoid", gamma=0.1).fit(X, NUMBER), X
    yield "OneClassSVM", svm.OneClassSVM().fit(X), X
    yield "GaussianNB", naive_bayes.GaussianNB().fit(X, THREE), X
    yield "KNeighborsClassifier", neighbors.KNeighborsClassifier(3).fit(X, THREE), X
    yield "KNeighborsRegressor", neighbors.KNeighborsRegressor(3).fit(X, NUMBER), X
    yield "MLPClassifier", neural_network.MLPClassifier([6], max_iter=50, random_state=0).fit(X, THREE), X
    yield "KMeans", cluster.KMeans(3, n_init=1, random_state=0).fit(X), X
    yield "LinearDiscriminantAnalysis", discriminant_analysis.LinearDiscriminantAnalysis().fit(X, THREE), X
    yield "PCA", decomposition.PCA(2).fit(X), X
    yield "StandardScaler", preprocessing.StandardScaler().fit(X), X
    yield "MinMaxScaler", preprocessing.MinMaxScaler().fit(X), X
    for norm in ("l1", "l2", "max"):
        yield "Normalizer_" + norm, preprocessing.Normalizer(norm).fit(X), np.abs(X)
    yield "Binarizer", preprocessing.Binarizer(threshold=0.2).fit(X), X
    yield "SimpleImputer", impute.SimpleImputer().fit(HOLES), HOLES
    yield "SelectKBest", feature_selection.SelectKBest(k=2).fit(X, TWO), X
    whole = THREE.reshape(-1, 1)
    yield "OneHotEncoder", preprocessing.OneHotEncoder(handle_unknown="ignore").fit(whole), whole
    yield "OneHotEncoder_names", preprocessing.OneHotEncoder().fit(NAMES.reshape(-1, 1)), NAMES.reshape(-1, 1)
    yield "OrdinalEncoder", preprocessing.OrdinalEncoder().fit(whole), whole
    yield "LabelEncoder", preprocessing.LabelEncoder().fit(NAMES), NAMES
    steps = pipeline.make_pipeline(
        impute.SimpleImputer(), preprocessing.StandardScaler(), linear_model.LogisticRegression()
    )
    yield "Pipeline", steps.fit(HOLES, NAMES), HOLES


def cases():
    for name, model, x in models():
        for zipmap in (False, True) if name == "LogisticRegression" else (False,):
            options = {"zipmap": zipmap} if hasattr(model, "predict_proba") else {}
            sample = x[:1].astype(object) if x.dtype.kind == "U" else x[:1]
            made = to_onnx(model, sample, options={id(model): options} if options else None)
            given = {made.graph.input[0].name: x[:7].astype(object) if x.dtype.kind == "U" else x[:7]}
            yield "sklearn_" + name + ("_zipmap" if zipmap else ""), made, given
