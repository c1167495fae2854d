"""Architectures of torch.nn, at reduced sizes."""

import torch
import torch.nn.functional as F
from torch import nn

from case import Case


def images(channels=3, side=16):
    return lambda n, h=side, w=side: {"x": torch.randn(n, channels, h, w)}


def rows(width):
    return lambda n: {"x": torch.randn(n, width)}


def series(channels):
    return lambda n, length: {"x": torch.randn(n, channels, length)}


def steps(width):
    return lambda n, length: {"x": torch.randn(n, length, width)}


BATCH = {"x": {0: "batch"}}
SERIES = {"x": {0: "batch", 2: "length"}}
STEPS = {"x": {0: "batch", 1: "length"}}
SIDES = {"x": {0: "batch", 2: "height", 3: "width"}}


class Of(nn.Module):
    """A function and the modules that it uses."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs):
        return self.function(self, *inputs)


def conv_block(i, o, stride=1, groups=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride, 1, groups=groups, bias=False), nn.BatchNorm2d(o), nn.ReLU6())


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.a, self.b = conv_block(channels, channels), conv_block(channels, channels)

    def forward(self, x):
        return F.relu(x + self.b(self.a(x)))


class SqueezeExcite(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.down, self.up = nn.Linear(channels, 4), nn.Linear(4, channels)

    def forward(self, x):
        s = torch.sigmoid(self.up(F.silu(self.down(x.mean((2, 3))))))
        return x * s[:, :, None, None]


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.deep = conv_block(3, 8), conv_block(8, 8, 2)
        self.up, self.out = nn.ConvTranspose2d(8, 8, 2, 2), nn.Conv2d(16, 2, 1)

    def forward(self, x):
        d = self.down(x)
        u = self.up(self.deep(d))
        u = F.interpolate(u, size=d.shape[2:], mode="bilinear", align_corners=False)
        return self.out(torch.cat([d, u], 1))


class Attention(nn.Module):
    def __init__(self, width=16, heads=2, causal=True):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, t, w = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(n, t, w))


class Decoder(nn.Module):
    """One step of a decoder with a cache of keys and values, empty at first."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, keys, values):
        n, t, w = x.shape
        q, k, v = (f(x).view(n, t, self.heads, w // self.heads).transpose(1, 2) for f in (self.q, self.k, self.v))
        keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        p = torch.softmax(q @ keys.transpose(2, 3) / 2.0, -1)
        return self.o((p @ values).transpose(1, 2).reshape(n, t, w)), keys, values


class Gated(nn.Module):
    """Dilated causal convolutions with gates, as in WaveNet."""

    def __init__(self, channels=8):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(channels, 2 * channels, 2, dilation=d) for d in (1, 2, 4))

    def forward(self, x):
        for d, layer in zip((1, 2, 4), self.layers):
            a, b = layer(F.pad(x, (d, 0))).chunk(2, 1)
            x = x + torch.tanh(a) * torch.sigmoid(b)
        return x


def activations(m, x):
    kinds = (F.relu, F.gelu, F.silu, F.mish, F.elu, F.selu, F.celu, F.softplus, F.softsign, F.tanhshrink, F.hardswish,
             F.hardsigmoid, F.hardtanh, F.logsigmoid, F.leaky_relu, torch.erf, torch.sin, F.softshrink, F.hardshrink)
    return [k(x) for k in kinds] + [F.glu(x, 1), F.gelu(x, approximate="tanh"), m.prelu(x)]


def reductions(m, x):
    return [x.sum(1), x.mean(1, keepdim=True), x.amax(1), x.amin(1), x.std(1), x.var(1, unbiased=False), x.prod(1),
            x.logsumexp(1), x.norm(dim=1), x.argmax(1), x.argmin(1), (x > 0).any(1), (x > 0).all(1), x.cumsum(1)]


def moves(m, x):
    return [x.roll(1, 1), x.flip(1), F.pad(x, (1, 2), mode="constant", value=3.0), x.unsqueeze(1).expand(-1, 3, -1),
            x[:, ::2], x[:, -3:], x.repeat(1, 2), torch.stack([x, -x], 1), x.t(), x.tril(), x.unfold(1, 3, 2),
            torch.where(x > 0, x, torch.zeros_like(x)), x.masked_fill(x > 1, -1.0)]


def choices(m, x):
    values, places = x.topk(3, 1)
    return [values, places, x.sort(1).values, x.gather(1, places), x.index_select(1, places[0]),
            torch.zeros_like(x).scatter(1, places, values), torch.zeros_like(x).scatter_add(1, places, values),
            F.one_hot(places, 8), torch.nonzero(x > 0.5), x[x > 0]]


def recurrent(kind, **options):
    def forward(m, x):
        y, state = m.cell(x)
        return [y, *(state if isinstance(state, tuple) else [state])]
    return lambda: Of(forward, cell=kind(6, 5, batch_first=True, **options))


def vit():
    def forward(m, x):
        t = m.patch(x).flatten(2).transpose(1, 2)
        t = torch.cat([m.token.expand(t.shape[0], -1, -1), t], 1) + m.place
        return m.head(m.body(t)[:, 0])
    return Of(forward, patch=nn.Conv2d(3, 16, 4, 4), token=nn.Parameter(torch.randn(1, 1, 16)),
              place=nn.Parameter(torch.randn(1, 17, 16)), head=nn.Linear(16, 5),
              body=nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 1))


def bag(m, ids):
    return [m.table(ids).mean(1), m.table(ids).max(1).values]


def cases():
    two, open2, open3 = [(2,), (1,), (0,)], [(2, 5), (1, 1), (3, 9)], [(2, 16, 16), (1, 20, 12), (3, 8, 8)]
    one = [(2,), (1,)]
    seq = nn.Sequential
    return [
        Case("mlp", lambda: seq(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4), nn.Softmax(-1)), rows(8), two, BATCH),
        Case("mlp_layer_norm", lambda: seq(nn.LayerNorm(8), nn.Linear(8, 8), nn.GELU()), rows(8), two, BATCH),
        Case("lenet", lambda: seq(nn.Conv2d(1, 4, 5), nn.MaxPool2d(2), nn.Tanh(), nn.Flatten(), nn.Linear(144, 10)),
             images(1), two, BATCH),
        Case("resnet", lambda: seq(conv_block(3, 8, 2), Residual(8), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                   nn.Linear(8, 5)), images(), open3, SIDES),
        Case("mobilenet", lambda: seq(conv_block(3, 8), conv_block(8, 8, 2, 8), nn.Conv2d(8, 12, 1), nn.Hardswish(),
                                      SqueezeExcite(12)), images(), open3, SIDES),
        Case("unet", UNet, images(), [(2, 16, 16), (1, 8, 12)], SIDES),
        Case("vgg", lambda: seq(conv_block(3, 6), nn.MaxPool2d(2, 2, ceil_mode=True), conv_block(6, 6),
                                nn.AvgPool2d(3, 2, 1, count_include_pad=False)), images(), open3, SIDES),
        Case("generator", lambda: seq(nn.Linear(8, 64), nn.Unflatten(1, (4, 4, 4)), nn.ConvTranspose2d(4, 3, 4, 2, 1),
                                      nn.Tanh()), rows(8), one, BATCH),
        Case("super_resolution", lambda: seq(nn.Conv2d(3, 12, 3, padding=1), nn.PixelShuffle(2), nn.PixelUnshuffle(2)),
             images(), open3, SIDES),
        Case("conv1d", lambda: seq(nn.Conv1d(4, 6, 3, padding=1), nn.BatchNorm1d(6), nn.LeakyReLU(), nn.MaxPool1d(2)),
             series(4), [(2, 12), (1, 5)], SERIES),
        Case("conv3d", lambda: seq(nn.Conv3d(2, 4, 3, padding=1), nn.ReLU(), nn.AvgPool3d(2)),
             lambda n: {"x": torch.randn(n, 2, 6, 6, 6)}, one, BATCH),
        Case("wavenet", Gated, series(8), [(2, 12), (1, 1), (1, 30)], SERIES),
        Case("norms", lambda: seq(nn.GroupNorm(2, 8), nn.InstanceNorm2d(8, affine=True), nn.LocalResponseNorm(3)),
             images(8, 6), one, BATCH),
        Case("rnn", recurrent(nn.RNN), steps(6), open2, STEPS),
        Case("gru", recurrent(nn.GRU, num_layers=2), steps(6), open2, STEPS),
        Case("gru_both", recurrent(nn.GRU, bidirectional=True), steps(6), open2, STEPS),
        Case("lstm", recurrent(nn.LSTM), steps(6), open2, STEPS),
        Case("lstm_both", recurrent(nn.LSTM, num_layers=2, bidirectional=True), steps(6), open2, STEPS),
        Case("lstm_projected", recurrent(nn.LSTM, proj_size=3), steps(6), open2, STEPS),
        Case("lstm_cell", lambda: Of(lambda m, x: m.cell(x), cell=nn.LSTMCell(6, 5)), rows(6), one, BATCH),
        Case("encoder", lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), steps(16), open2, STEPS),
        Case("encoder_first", lambda: nn.TransformerEncoderLayer(16, 2, 32, activation="gelu", norm_first=True,
                                                                 batch_first=True), steps(16), open2, STEPS),
        Case("decoder", lambda: nn.TransformerDecoderLayer(16, 2, 32, batch_first=True),
             lambda n, t, s: {"x": torch.randn(n, t, 16), "memory": torch.randn(n, s, 16)}, [(2, 5, 3), (1, 1, 4)],
             {"x": {0: "batch", 1: "t"}, "memory": {0: "batch", 1: "s"}}),
        Case("attention", Attention, steps(16), open2, STEPS),
        Case("attention_heads", lambda: Of(lambda m, x: m.a(x, x, x), a=nn.MultiheadAttention(16, 4, batch_first=True)),
             steps(16), open2, STEPS),
        Case("kv_cache", Decoder, lambda n, t, p: {"x": torch.randn(n, t, 16), "keys": torch.randn(n, 2, p, 8),
                                                   "values": torch.randn(n, 2, p, 8)},
             [(2, 3, 4), (2, 1, 7), (1, 3, 0)],
             {"x": {0: "batch", 1: "t"}, "keys": {0: "batch", 2: "past"}, "values": {0: "batch", 2: "past"}}),
        Case("vit", vit, images(), one, BATCH),
        Case("embedding", lambda: Of(bag, table=nn.Embedding(20, 6)),
             lambda n, t: {"x": torch.randint(0, 20, (n, t))}, open2, STEPS),
        Case("embedding_bag", lambda: nn.EmbeddingBag(20, 6, mode="mean"),
             lambda n, t: {"x": torch.randint(0, 20, (n, t))}, [(2, 5)]),
        Case("activations", lambda: Of(activations, prelu=nn.PReLU()), rows(8), two, BATCH),
        Case("reductions", lambda: Of(reductions), rows(8), one, BATCH),
        Case("moves", lambda: Of(moves), rows(8), one, BATCH),
        Case("choices", lambda: Of(choices), rows(8), one, BATCH),
        Case("interpolate", lambda: Of(lambda m, x: [F.interpolate(x, scale_factor=2, mode=k) for k in
                                                     ("nearest", "bilinear", "bicubic")]), images(2, 5), one, BATCH),
        Case("grid_sample", lambda: Of(lambda m, x: F.grid_sample(x, torch.tanh(x[:, :2].permute(0, 2, 3, 1)),
                                                                  align_corners=False)), images(3, 6), one, BATCH),
        Case("pads", lambda: seq(nn.ReflectionPad2d(2), nn.ReplicationPad2d(1), nn.ConstantPad2d(1, 0.5),
                                 nn.CircularPad2d(1)), images(2, 6), one, BATCH),
        Case("einsum", lambda: Of(lambda m, x: [torch.einsum("btd,bsd->bts", x, x), torch.einsum("btd->dt", x),
                                                torch.einsum("btd,d->bt", x, m.w)], w=nn.Parameter(torch.randn(6))),
             steps(6), open2, STEPS),
        Case("pooling", lambda: Of(lambda m, x: [F.adaptive_avg_pool2d(x, 4), F.adaptive_max_pool2d(x, 2),
                                                 F.lp_pool2d(x, 2, 2), F.max_pool2d(x, 3, 1, dilation=2),
                                                 F.max_pool2d(x, 2, return_indices=True)[1]]), images(2, 8), one,
             BATCH),
        Case("bilinear", lambda: Of(lambda m, x: [m.b(x, -x), F.cosine_similarity(x, x * x), F.normalize(x)],
                                    b=nn.Bilinear(6, 6, 3)), rows(6), one, BATCH),
        Case("fold", lambda: Of(lambda m, x: F.unfold(x, 3, padding=1)), images(2, 6), one, BATCH),
        Case("masks", lambda: Of(lambda m, x: [torch.triu(torch.ones(x.shape[1], x.shape[1]), 1),
                                               x.masked_fill(torch.arange(x.shape[1])[None, :, None] > 2, 0)]),
             steps(6), open2, STEPS),
        Case("shapes", lambda: Of(lambda m, x: [x.view(x.size(0) * x.size(1), -1), x.flatten(1), x.reshape(-1),
                                                x.new_zeros(x.shape[0], 3), x.split(2, 2)[0], x[:, -1]]),
             steps(6), open2, STEPS),
    ]
