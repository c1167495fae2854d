"""The models as text of onnx.parser. Inputs whose name begins with W become weights; `sizes` gives the
sizes of symbols, one set of inputs each; `fill` says what is drawn: (low, high), or the contents."""

import numpy as np

TWO = [{"N": 2}, {"N": 5}]
ODD = [{"N": 1}, {"N": 7}, {"N": 20}]

MODELS = {
    "convolutions": dict(sizes=TWO, graph="""
        (float[N,3,10,9] x, float[8,3,3,3] W, float[8] Wb, float[8] Ws, float[8] Wo, float[8] Wm, float[8] Wv,
         float[5,8] Wg, float[5] Wc) => (float[N,5] y) {
          c = Conv<pads=[1,1,1,1]>(x, W, Wb)
          n = BatchNormalization(c, Ws, Wo, Wm, Wv)
          r = Relu(n)
          p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(r)
          a = GlobalAveragePool(p)
          f = Flatten(a)
          y = Gemm<transB=1>(f, Wg, Wc) }""", fill={"Wv": (0.5, 1.5)}),
    "depthwise": dict(sizes=TWO, graph="""
        (float[N,6,11,8] x, float[6,1,3,3] W, float[12,3,3,2] Wg) => (float[N,12,A,B] y) {
          c = Conv<group=6, strides=[2,1], pads=[1,1,1,1]>(x, W)
          h = HardSwish(c)
          y = Conv<group=2, dilations=[2,1], pads=[2,0,2,1]>(h, Wg) }"""),
    "convolution_wide": dict(graph="""
        (float[2,16,13,13] x, float[32,16,3,3] W, float[32] Wb, float[24,32,1,1] Wp) => (float[2,24,13,13] y) {
          c = Conv<pads=[1,1,1,1]>(x, W, Wb)
          r = LeakyRelu<alpha=0.1>(c)
          y = Conv(r, Wp) }"""),
    "convolution_1d": dict(sizes=[{"L": 9}, {"L": 30}], graph="""
        (float[2,4,L] x, float[6,4,5] W, float[6] Wb) => (float[2,6,M] y, float[2,6,K] z) {
          c = Conv<pads=[3,1], strides=[2]>(x, W, Wb)
          y = AveragePool<kernel_shape=[3], pads=[1,1], count_include_pad=1>(c)
          t = Tanh(c)
          z = AveragePool<kernel_shape=[2], pads=[1,0]>(t) }"""),
    "transposed": dict(sizes=TWO, graph="""
        (float[N,4,5,6] x, float[4,3,3,2] W, float[3] Wb) => (float[N,3,A,B] y) {
          c = ConvTranspose<strides=[2,3], pads=[1,0,0,1], output_padding=[1,0]>(x, W, Wb)
          y = Sigmoid(c) }"""),
    "layers": dict(sizes=ODD, graph="""
        (float[N,20] x, float[20,33] W, float[33] Wb, float[10,33] Wc, float[10] Wd) => (float[N,10] y, float[N,10] z) {
          g = Gemm<alpha=0.5, beta=2.0>(x, W, Wb)
          r = Relu(g)
          h = Gemm<transB=1>(r, Wc, Wd)
          y = Softmax(h)
          z = LogSoftmax(h) }"""),
    "products": dict(graph="""
        (float[2,1,7,13] a, float[3,13,17] b, float[64,96] c, float[96,80] W, float[80] Wb, float[33,65] d, float[65,1] e)
        => (float[2,3,7,17] y, float[64,80] z, float[33,1] u) {
          y = MatMul(a, b)
          m = MatMul(c, W)
          s = Add(m, Wb)
          z = Relu(s)
          u = MatMul(d, e) }"""),
    "open_products": dict(sizes=[{"M": 1, "K": 3}, {"M": 19, "K": 40}, {"M": 6, "K": 16}], graph="""
        (float[M,K] a, float[K,M] b, float[M] c) => (float[M,M] y, float[K] z) {
          p = MatMul(a, b)
          y = Add(p, c)
          z = MatMul(c, a) }"""),
    "attention": dict(sizes=[{"S": 3}, {"S": 18}], graph="""
        (float[2,S,24] x, float[24,72] W, float[72] Wb, float[24,24] Wo, bool[S,S] mask, int64[4] Wshape, float[1] Wscale,
         float[1] Wlow, int64[3] Wback) => (float[2,S,24] y) {
          m = MatMul(x, W)
          q = Add(m, Wb)
          a, b, c = Split<axis=2, num_outputs=3>(q)
          ar = Reshape(a, Wshape)
          br = Reshape(b, Wshape)
          cr = Reshape(c, Wshape)
          at = Transpose<perm=[0,2,1,3]>(ar)
          bt = Transpose<perm=[0,2,3,1]>(br)
          ct = Transpose<perm=[0,2,1,3]>(cr)
          s = MatMul(at, bt)
          t = Mul(s, Wscale)
          w = Where(mask, t, Wlow)
          p = Softmax(w)
          o = MatMul(p, ct)
          ot = Transpose<perm=[0,2,1,3]>(o)
          f = Reshape(ot, Wback)
          y = MatMul(f, Wo) }""", opset=18,
        fill={"Wshape": [0, 0, 4, 6], "Wscale": [0.4], "Wlow": [-1e9], "Wback": [0, 0, 24]}),
    "attention_operator": dict(opset=23, sizes=[{"S": 4, "T": 9}, {"S": 17, "T": 40}], graph="""
        (float[1,4,S,8] q, float[1,2,T,8] k, float[1,2,T,8] v) => (float[1,4,S,8] y) {
          y = Attention<is_causal=1>(q, k, v) }"""),
    "normalized": dict(sizes=ODD, graph="""
        (float[N,30] x, float[30] Wg, float[30] Wb, float[30,50] W, float[50,30] Wd, float Wr, float Wh, float Wi)
        => (float[N,30] y) {
          n = LayerNormalization<axis=-1, epsilon=0.001>(x, Wg, Wb)
          a = MatMul(n, W)
          s = Mul(a, Wr)
          e = Erf(s)
          o = Add(e, Wi)
          g = Mul(a, o)
          h = Mul(g, Wh)
          b = MatMul(h, Wd)
          y = Add(x, b) }""", fill={"Wr": [0.70710678], "Wh": [0.5], "Wi": [1.0]}),
    "norms": dict(opset=18, sizes=TWO, graph="""
        (float[N,6,5,4] x, float[6] Ws, float[6] Wb, int64[3] Wshape, int64[4] Wback) => (float[N,6,5,4] y, float[N,6,5,4] z,
         float[N,6,5,4] u, float[N,6,5,4] v) {
          y = InstanceNormalization(x, Ws, Wb)
          z = LRN<size=3, alpha=0.1, beta=0.7, bias=1.0>(x)
          u = LpNormalization<axis=1>(x)
          v = MeanVarianceNormalization(x) }""", fill={"Wshape": [0, 2, -1], "Wback": [0, 6, 5, 4]}),
    "lstm": dict(sizes=[{"T": 1}, {"T": 6}], graph="""
        (float[T,3,5] x, float[2,16,5] W, float[2,16,4] Wr, float[2,32] Wb, int32[3] lengths)
        => (float[T,2,3,4] y, float[2,3,4] h, float[2,3,4] c) {
          y, h, c = LSTM<direction="bidirectional", hidden_size=4>(x, W, Wr, Wb, lengths) }""",
        fill={"lengths": [1, 1, 1]}),
    "lstm_lengths": dict(graph="""
        (float[6,3,5] x, float[1,16,5] W, float[1,16,4] Wr, int32[3] lengths, float[1,3,4] a, float[1,3,4] b)
        => (float[6,1,3,4] y, float[1,3,4] h) {
          y, h = LSTM<hidden_size=4>(x, W, Wr, "", lengths, a, b) }""".replace('""', ""),
        fill={"lengths": [6, 2, 4]}),
    "gru": dict(sizes=[{"T": 2}, {"T": 5}], graph="""
        (float[T,2,6] x, float[1,15,6] W, float[1,15,5] Wr, float[1,30] Wb) => (float[T,1,2,5] y, float[1,2,5] h) {
          y, h = GRU<hidden_size=5, linear_before_reset=1>(x, W, Wr, Wb) }"""),
    "rnn": dict(graph="""
        (float[4,2,6] x, float[1,5,6] W, float[1,5,5] Wr) => (float[4,1,2,5] y, float[1,2,5] h) {
          y, h = RNN<hidden_size=5, direction="reverse">(x, W, Wr) }"""),
    "reductions": dict(opset=18, sizes=[{"N": 1}, {"N": 9}], graph="""
        (float[N,7,12] x, int64[1] Wa, int64[2] Wb, int64[1] Wl) => (float[N,1,12] s, float[7] m, float[N,7] l, float[A] h,
         float[N,7,1] p, float[N,7] e, float[N,12] q) {
          s = ReduceSum(x, Wa)
          m = ReduceMean<keepdims=0>(x, Wb)
          l = ReduceMax<keepdims=0>(x, Wl)
          h = ReduceMin<keepdims=0>(x, Wb)
          p = ReduceProd(x, Wl)
          e = ReduceLogSumExp<keepdims=0>(x, Wl)
          q = ReduceL2<keepdims=0>(x, Wa) }""", fill={"Wa": [1], "Wb": [0, 2], "Wl": [-1]}),
    "long_rows": dict(graph="""
        (float[3,5000] x, float16[2,4100] h, double[2,1030] d, int64[1] Wl) => (float[3,5000] y, float[3,1] s, float16[2,4100] z, double[2,1] u) {
          y = Softmax(x)
          s = ReduceSum(x, Wl)
          z = Softmax(h)
          u = ReduceSum(d, Wl) }""", fill={"Wl": [-1]}),
    "arguments": dict(sizes=ODD, graph="""
        (float[N,11] x, int64[1] Wk) => (int64[N] a, int64[1,11] b, float[N,4] v, int64[N,4] i) {
          a = ArgMax<axis=1, keepdims=0>(x)
          b = ArgMin<axis=0, select_last_index=1>(x)
          v, i = TopK<axis=-1>(x, Wk) }""", fill={"Wk": [4]}),
    "sorted": dict(graph="""
        (float[2,300] x, int32[40] n, int64[1] Wk, int64[1] Wl) => (float[2,300] v, int64[2,300] i, int32[10] u, int64[10] w) {
          v, i = TopK<largest=0>(x, Wk)
          u, w = TopK(n, Wl) }""", fill={"Wk": [300], "Wl": [10], "n": (-100, 100)}),
    "gathers": dict(sizes=TWO, graph="""
        (float[N,6,5] x, int64[3,2] Wi, int64[2,6,5] Wj, int64[4,2] Wk) => (float[N,3,2,5] a, float[2,6,5] b, float[4,5] c) {
          a = Gather<axis=1>(x, Wi)
          b = GatherElements<axis=2>(x, Wj)
          c = GatherND(x, Wk) }""", fill={"Wi": (-6, 5), "Wj": (-5, 4), "Wk": [[0, 1], [1, 5], [-1, -2], [1, 0]]}),
    "scatters": dict(opset=18, graph="""
        (float[4,6] x, int64[2,6] Wi, float[2,6] u, int64[3,1] Wk, float[3,6] v, int32[10] n, int64[3,1] Wp, int32[3] o)
        => (float[4,6] a, float[4,6] b, float[4,6] c, int32[10] d) {
          a = ScatterElements<axis=0, reduction="add">(x, Wi, u)
          b = ScatterND(x, Wk, v)
          c = ScatterElements<axis=0, reduction="max">(x, Wi, u)
          d = ScatterND<reduction="mul">(n, Wp, o) }""",
        fill={"Wi": (-4, 3), "Wk": [[3], [0], [2]], "Wp": [[1], [9], [1]]}),
    "pieces": dict(sizes=TWO, graph="""
        (float[N,8,7] x, float[N,3,7] y, int64[3] Ws, int64[3] We, int64[3] Wa, int64[3] Wt, int64[6] Wp, int64[2] Wn)
        => (float[A,B,C] a, float[N,5,7] b, float[N,6,7] c, float[D,E,F] d, float[G,H,I] e) {
          a = Slice(x, Ws, We, Wa, Wt)
          b, f = Split<axis=1>(x, Wn)
          c = Concat<axis=1>(y, f)
          d = Pad(x, Wp)
          e = Pad<mode="reflect">(y, Wp) }""",
        fill={"Ws": [0, 7, 1], "We": [9, 0, 6], "Wa": [0, 1, 2], "Wt": [1, -2, 3], "Wp": [0, 1, 2, 1, 2, 0], "Wn": [5, 3]}),
    "shapes": dict(sizes=[{"N": 2, "S": 3}, {"N": 4, "S": 7}], graph="""
        (float[N,S,12] x, int64 Wz, int64[2] Wt, int64[3] Wrep) => (float[N,3,S,4] t, float[A,B,C] r, float[N,S,12] e, int64[3] s) {
          s = Shape(x)
          n = Gather(s, Wz)
          u = Unsqueeze(n, Wu)
          d = Concat<axis=0>(u, Wm, Wt)
          f = Reshape(x, d)
          t = Transpose<perm=[0,2,1,3]>(f)
          r = Tile(x, Wrep)
          o = ConstantOfShape<value: tensor = float[1] {2.5}>(s)
          e = Mul(o, x) }""".replace("int64[3] Wrep)", "int64[3] Wrep, int64[1] Wu, int64[1] Wm)"),
        fill={"Wz": np.array(0), "Wt": [3, 4], "Wrep": [1, 2, 3], "Wu": [0], "Wm": [-1]}),
    "selections": dict(sizes=ODD, graph="""
        (float[N,9] x, float[N,1] y, int32[9] n, bool[N,9] b) => (float[N,9] a, bool[N,9] c, bool[N,9] d, float[N,9] e, bool[9] f) {
          c = Less(x, y)
          g = GreaterOrEqual(x, y)
          h = And(c, b)
          d = Xor(h, g)
          a = Where(d, x, y)
          i = Not(b)
          e = Where(i, y, x)
          z = Neg(n)
          f = Equal(n, z) }"""),
    "integers": dict(opset=18, sizes=ODD, graph="""
        (int32[N,6] a, int32[6] b, int64[N,6] c, int64[6] d, uint8[6] s, uint8[N,6] t)
        => (int32[N,6] q, int64[N,6] m, int32[N,6] p, int64[N,6] x, uint8[N,6] l, uint8[N,6] r, int64[N,1] sum, int32[N,6] y) {
          q = Div(a, b)
          m = Mod(c, d)
          p = Mul(a, b)
          x = Max(c, d)
          l = BitShift<direction="LEFT">(t, s)
          r = BitwiseXor(t, s)
          sum = ReduceSum(c, Wl)
          u = Abs(a)
          w = Sub(u, b)
          y = Sign(w) }""".replace("uint8[N,6] t)", "uint8[N,6] t, int64[1] Wl)"),
        fill={"b": [-3, 2, 5, -1, 7, 100], "d": [3, -2, 9, 1, -7, 1000], "s": (0, 7), "t": (0, 255), "Wl": [1],
              "a": (-1000, 1000), "c": (-5000000000, 5000000000)}),
    "casts": dict(sizes=ODD, graph="""
        (float[N,5] x, int32[N,5] n, bool[N,5] b, float16[N,5] h)
        => (int32[N,5] a, uint8[N,5] c, float[N,5] d, float16[N,5] e, double[N,5] f, int8[N,5] g, bool[N,5] i, float[N,5] k) {
          a = Cast<to=6>(x)
          c = Cast<to=2>(n)
          d = Cast<to=1>(b)
          e = Cast<to=10>(x)
          f = Cast<to=11>(x)
          g = Cast<to=3>(n)
          i = Cast<to=9>(x)
          k = Cast<to=1>(h) }""", fill={"x": (-100, 100), "n": (0, 100)}),
    "halves": dict(sizes=ODD, graph="""
        (float16[N,24] x, float16[24,40] W, float16[40] Wb) => (float16[N,40] y, float16[N,40] z) {
          m = MatMul(x, W)
          y = Add(m, Wb)
          t = Tanh(y)
          z = Mul(t, y) }"""),
    "doubles": dict(opset=18, graph="""
        (double[6,17] x, double[17,9] W, int64[1] Wl) => (double[6,9] y, double[6,1] z, double[6,9] u) {
          y = MatMul(x, W)
          e = Exp(y)
          z = ReduceMean(e, Wl)
          u = Div(y, e) }""", fill={"Wl": [1]}),
    "quantized": dict(sizes=TWO, opset=19, graph="""
        (float[N,16] x, float Ws, uint8 Wz, int8[16,10] W, float[10] Wt, int8[10] Wy, float Wu, uint8 Wv)
        => (float[N,10] y, uint8[N,16] q, uint8[N,10] r) {
          q = QuantizeLinear(x, Ws, Wz)
          d = DequantizeLinear(q, Ws, Wz)
          w = DequantizeLinear<axis=1>(W, Wt, Wy)
          y = MatMul(d, w)
          r = QLinearMatMul(q, Ws, Wz, W, Wt, Wy, Wu, Wv) }""",
        fill={"Ws": np.array(0.03), "Wz": np.array(120), "W": (-127, 127), "Wt": (0.01, 0.02),
              "Wy": [0] * 10, "Wu": np.array(0.1), "Wv": np.array(100)}),
    "quantized_convolution": dict(graph="""
        (uint8[1,3,8,8] x, float Ws, uint8 Wz, int8[4,3,3,3] W, float[4] Wt, int8[4] Wy, float Wu, uint8 Wv, int32[4] Wb)
        => (uint8[1,4,8,8] y, int32[1,4,6,6] c) {
          y = QLinearConv<pads=[1,1,1,1]>(x, Ws, Wz, W, Wt, Wy, Wu, Wv, Wb)
          c = ConvInteger(x, W, Wz) }""",
        fill={"x": (0, 255), "Ws": np.array(0.03), "Wz": np.array(120), "W": (-127, 127),
              "Wt": (0.01, 0.02), "Wy": [0] * 4, "Wu": np.array(0.4), "Wv": np.array(100),
              "Wb": (-500, 500)}),
    "quantized_dynamic": dict(sizes=ODD, graph="""
        (float[N,20] x, int8[20,12] W) => (int32[N,12] y, float s) {
          q, s, z = DynamicQuantizeLinear(x)
          y = MatMulInteger(q, W, z) }""", fill={"W": (-127, 127)}),
    "branch": dict(opset=18, graph="""
        (float[3,4] x, bool c, int64[1] Wl) => (float[3,4] y) {
          y = If (c) <
            then_branch = a () => (float[3,4] p) { s = ReduceSum(x, Wl)  p = Sub(x, s) },
            else_branch = b () => (float[3,4] q) { q = Mul(x, x) } > }""", fill={"Wl": [1]}, sizes=[{}, {}, {}, {}]),
    "loop": dict(graph="""
        (float[4] x, int64 n, bool Wtrue) => (float[4] y, float[K,4] z) {
          y, z = Loop (n, Wtrue, x) <
            body = b (int64 i, bool k, float[4] s) => (bool ko, float[4] t, float[4] u) {
              ko = Identity(k)  f = Cast<to=1>(i)  m = Mul(s, Wh)  t = Add(m, f)  u = Exp(m) } > }""".replace(
        "bool Wtrue)", "bool Wtrue, float[4] Wh)"),
        fill={"n": np.array(5), "Wtrue": np.array(True), "Wh": (-1, 1)}),
    "scan": dict(sizes=[{"T": 1}, {"T": 6}], graph="""
        (float[3] a, float[T,3] x) => (float[3] s, float[T,3] y) {
          s, y = Scan (a, x) <num_scan_inputs=1,
            body = b (float[3] p, float[3] q) => (float[3] r, float[3] o) { m = Mul(p, q)  r = Tanh(m)  o = Add(r, q) } > }"""),
    "counters": dict(sizes=TWO, graph="""
        (float[N,6] x, int64[N] i, int64 Wd, float[2] Wv, int64 Wax, int64 Wone, int64 Wten, int64 Wthree)
        => (float[N,6] a, float[N,5] b, float[N,6] c, int64[R] r, float[N,6] d) {
          a = CumSum(x, Wax)
          b = OneHot(i, Wd, Wv)
          c = CumSum<exclusive=1, reverse=1>(x, Wax)
          r = Range(Wone, Wten, Wthree)
          d = Trilu<upper=0>(x) }""",
        fill={"i": (-5, 4), "Wd": np.array(5), "Wv": [-1, 2.5], "Wax": np.array(1),
              "Wone": np.array(1), "Wten": np.array(11), "Wthree": np.array(3)}),
    "resized": dict(opset=18, sizes=TWO, graph="""
        (float[N,2,5,6] x, float[4] Ws, int64[4] Wn) => (float[N,2,A,B] y, float[N,2,C,D] z, float[N,2,E,F] u) {
          y = Resize<mode="linear">(x, , Ws)
          z = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, , Ws)
          u = Resize<mode="cubic", coordinate_transformation_mode="align_corners">(x, , Ws) }""",
        fill={"Ws": [1, 1, 2, 1.5]}),
    "functions": dict(sizes=ODD, graph="""
        (float[N,9] x) => (float[N,9] a, float[N,9] b, float[N,9] c, float[N,9] d, float[N,9] e, float[N,9] f) {
          a1 = Sin(x)  a2 = Cos(x)  a = Mul(a1, a2)
          b1 = Abs(x)  b2 = Sqrt(b1)  b3 = Log(b2)  b = Elu(b3)
          c1 = Softplus(x)  c = Selu(c1)
          d1 = Atan(x)  d2 = Sinh(d1)  d = HardSigmoid(d2)
          e1 = Softsign(x)  e2 = Asin(e1)  e = Mish(e2)
          f1 = Exp(x)  f2 = Reciprocal(f1)  f = ThresholdedRelu<alpha=0.5>(f2) }""", opset=18),
    "rounded": dict(sizes=ODD, graph="""
        (float[N,9] x, float[9] p, float Wlow, float Whigh) => (float[N,9] a, float[N,9] b, float[N,9] c, float[N,9] d, float[N,9] e) {
          a1 = Abs(x)  a = Pow(a1, p)
          b1 = Floor(x)  b2 = Ceil(x)  b = Mul(b1, b2)
          c1 = Round(x)  c = Sub(x, c1)
          d = Clip(x, Wlow, Whigh)
          e1 = Max(x, p)  e2 = Min(e1, x, p)  e = Mean(e1, e2, x) }""",
        fill={"x": (-4, 4), "Wlow": np.array(-1.5), "Whigh": np.array(2.0)}),
    "einsum": dict(sizes=TWO, graph="""
        (float[N,4,5] a, float[5,N,6] b, float[4,4] c) => (float[N,4,6] x, float y) {
          x = Einsum<equation="nij,jnk->nik">(a, b)
          y = Einsum<equation="ii">(c) }"""),
    "data_sizes": dict(graph="""
        (float[5,6] x, bool[5] b, int64[9] n) => (int64[2,K] i, float[M,6] c, int64[U] u, int64[V] v) {
          i = NonZero(x)
          c = Compress<axis=0>(x, b)
          u, f, v = Unique(n) }""", fill={"n": (-3, 3)}),
    "blocks": dict(sizes=TWO, graph="""
        (float[N,8,4,6] x) => (float[N,2,8,12] a, float[N,32,2,3] b, float[N,8,4,6] c) {
          a = DepthToSpace<blocksize=2>(x)
          b = SpaceToDepth<blocksize=2>(x)
          d = DepthToSpace<blocksize=2, mode="CRD">(x)
          e = SpaceToDepth<blocksize=2>(d)
          c = Add(e, x) }"""),
    "residual": dict(sizes=ODD, graph="""
        (float[N,16] x, float[16,16] Wa, float[16,16] Wb, float[16,16] Wc) => (float[N,16] y, float[N,48] z, float[N,16] same) {
          a = MatMul(x, Wa)  ra = Relu(a)
          b = MatMul(ra, Wb)  rb = Tanh(b)
          s = Add(ra, rb)
          c = MatMul(s, Wc)  rc = Sigmoid(c)
          t = Mul(rc, ra)
          y = Add(t, x)
          z = Concat<axis=1>(ra, rb, rc)
          same = Identity(x) }"""),
    "pools": dict(sizes=TWO, graph="""
        (float[N,3,9,10] x) => (float[N,3,A,B] a, int64[N,3,A,B] i, float[N,3,C,D] b, float[N,3,E,F] c, float[N,3,1,1] d) {
          a, i = MaxPool<kernel_shape=[3,2], strides=[2,2], pads=[1,0,1,1]>(x)
          b = AveragePool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1], ceil_mode=1>(x)
          c = LpPool<kernel_shape=[2,3], p=2>(x)
          d = GlobalMaxPool(x) }""", opset=18),
    "spectrum": dict(graph="""
        (float[2,40,1] x, int64 Wn) => (float[2,A,2] y) {
          y = DFT<axis=1, onesided=1>(x) }""", fill={"Wn": np.array(40)}),
    "boxes": dict(graph="""
        (float[1,12,4] b, float[1,2,12] s, int64 Wm, float Wi, float Wt) => (int64[K,3] y) {
          y = NonMaxSuppression(b, s, Wm, Wi, Wt) }""",
        fill={"b": (0, 1), "s": (0, 1), "Wm": np.array(5), "Wi": np.array(0.3), "Wt": np.array(0.2)}),
    "texts": dict(opset=20, sizes=TWO, graph="""
        (string[N,3] a, string[3] b) => (string[N,3] y, bool[N,3] z) {
          y = StringConcat(a, b)
          z = RegexFullMatch<pattern="[a-z]+.*">(a) }"""),
    "rotated": dict(opset=23, sizes=[{"S": 3}, {"S": 8}], graph="""
        (float[2,S,16] x, float[16] Wg, float[16,24] W, float[16,24] Wu, float[24,16] Wd) => (float[2,S,16] y) {
          n = RMSNormalization(x, Wg)
          g = MatMul(n, W)
          u = MatMul(n, Wu)
          s = Sigmoid(g)
          t = Mul(g, s)
          h = Mul(t, u)
          d = MatMul(h, Wd)
          y = Add(x, d) }"""),
}
