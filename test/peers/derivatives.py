"""Derivatives and optimizers of <hone/hone.h> against PyTorch, which computes in f64 from the same f32 inputs.

The program peer_derivatives writes a folder of .npy files for each case; the function of the same name below computes
it with PyTorch. The rule, for each gradient g of Hone and p of PyTorch: NaN and infinities are at the same places, and
elsewhere |g - p| <= 1e-4 * scale, where scale is the largest |p| of that gradient, but at least 1e-2 of the largest
gradient of the case, so that gradients that cancel to 0 are judged beside the others. A loss, and a state after a run
or after 50 steps of an optimizer, follows the same rule with a scale of at least 1.

Each run also checks the comparison: for every gradient that is finite and not zero, the sign of its largest element is
changed, which must be found. KNOWN lists the cases that differ, with the reason; one that agrees is a failure too.
usage: derivatives.py PATH_OF_HONE [--only NAME ...] [--keep DIR] [--plant NAME]
  --plant changes the sign of a gradient of that case, so that the program must fail."""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

TOLERANCE = 1e-4
STEPS = 50
KNOWN = {
    "scan.branch": "a scan whose step calls if_else() has no derivative",
}


def weighed(y):
    flat = y.reshape(-1)
    return (flat * torch.cos(torch.arange(1, flat.numel() + 1, dtype=flat.dtype))).sum()


def derivative(loss, x):
    return torch.autograd.grad(loss, x, create_graph=True)[0]


def attention(mask=None, causal=False, scale=None, grouped=False):
    return lambda q, k, v, *m: F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask(*m) if mask else None, is_causal=causal, scale=scale, enable_gqa=grouped)


def seen(m):
    return torch.cat([torch.ones(*m.shape[:-1], 1, dtype=torch.bool), m], -1)


class Whole(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return torch.round(x)

    @staticmethod
    def backward(context, d):
        return d * torch.cos(context.saved_tensors[0])


def dynamic_update(x, part, at):
    at = min(int(at), x.shape[1] - part.shape[1])
    return torch.cat([x[:, :at], part, x[:, at + part.shape[1]:]], 1)


def dynamic_slice(x, at, size):
    at = min(int(at), x.shape[1] - size)
    return x[:, at:at + size]


def lstm(x, h, c, w, bias):
    kept = []
    for one in x:
        i, f, g, o = ((torch.cat([one, h], 1) @ w) + bias).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        kept.append(h)
    return weighed(torch.stack(kept)) + weighed(c)


def scanned_product(x, c):
    kept = []
    for one in x:
        kept.append(torch.sin(c))
        c = c * one + 0.5
    return torch.stack(kept)


def scanned_branch(x, c, w):
    kept = []
    for one in x:
        c = c * w if one.sum() > 0 else torch.sin(c + one)
        kept.append(c * one)
    return torch.stack(kept)


def scanned_last(x, w, c):
    for one in x:
        c = torch.tanh(w @ c + one)
    return c


def second_of_scan(x, c):
    for one in x:
        c = c.sin() * one + c
    return derivative(c.sum(), x).square()


def carried_count(x, c):
    kept = []
    for n, one in enumerate(x, 3):
        kept.append(one.exp() * c)
        c = c * one + np.sin(n)
    return weighed(torch.stack(kept)) + weighed(c)


def second_of_kept(x, c):
    first, kept = c, []
    for one in x:
        kept.append(c.exp() * one)
        c = c.tanh() * one
    loss = weighed(torch.stack(kept)) + c.square().sum()
    return weighed(derivative(loss, x).square()) + weighed(derivative(loss, first).square())


def scattered(f):
    return lambda x, y: torch.stack([f(x[:, 0], y[:, 1]), x[:, 1], x[:, 2], f(x[:, 3], y[:, 0]), x[:, 4]], 1)


def log_softmax_hidden(x, m):
    hidden = torch.where(seen(m), x, -torch.inf)
    return torch.where(seen(m), hidden.log_softmax(-1), 0) + hidden.logsumexp(-1)[..., None]


def branch(a, b):
    return a * torch.exp(b) if a.sum() > b.sum() else torch.sin(a) + b.square()


def penalty(x, w1, b1, w2):
    y = F.linear(F.gelu(F.linear(x, w1, b1)), w2)
    return (derivative(y.sum(), x).norm(dim=1) - 1).square().mean()


def third(x):
    once = derivative((x.pow(2.5) * x.log()).sum(), x)
    return derivative((once * x.sin()).sum(), x)


def second_of_attention(q, k, v):
    with sdpa_kernel(SDPBackend.MATH):  # the only one with second derivatives
        return derivative(weighed(attention(causal=True)(q, k, v)), q).square()


def cross_entropy(**options):
    return lambda x, t, *w: F.cross_entropy(x, t, *(one.detach() for one in w), **options)


def linear_cross_entropy(**options):
    return lambda x, w, t, *bias: F.cross_entropy(F.linear(x, w, *bias), t, **options)


FUNCTIONS = {
    "abs": torch.abs,
    "square": torch.square,
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "reciprocal": torch.reciprocal,
    "sin": torch.sin,
    "cos": torch.cos,
    "erf": torch.erf,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "sigmoid.far": torch.sigmoid,
    "softplus": lambda x: F.softplus(x, threshold=100),
    "softplus.far": lambda x: F.softplus(x, threshold=100),
    "relu": F.relu,
    "relu.open": F.relu,
    "silu": F.silu,
    "silu.far": F.silu,
    "gelu.erf": F.gelu,
    "gelu.tanh": lambda x: F.gelu(x, approximate="tanh"),
    "gelu.erf.far": F.gelu,
    "gelu.tanh.far": lambda x: F.gelu(x, approximate="tanh"),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "elu": lambda x: F.elu(x, 1.5),
    "elu.far": F.elu,
    "pow.number": lambda x: x**3,
    "pow.tensors": torch.pow,
    "pow.zeros": lambda x: x**2,
    "add.broadcast": torch.add,
    "sub.broadcast": torch.sub,
    "mul.broadcast": torch.mul,
    "mul.scalar": torch.mul,
    "div.broadcast": torch.div,
    "remainder": torch.remainder,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "clip": lambda x: x.clip(-1, 0.5),
    "clip.tensors": torch.clip,
    "where": torch.where,
    "abs.ties": torch.abs,
    "relu.ties": F.relu,
    "leaky_relu.ties": F.leaky_relu,
    "elu.ties": lambda x: F.elu(x, 0.5),
    "clip.ties": lambda x: x.clip(-1, 1),
    "maximum.ties": torch.maximum,
    "minimum.ties": torch.minimum,
    "sqrt.zeros": torch.sqrt,
    "pow.negative": torch.pow,
    "pow.cube.zeros": lambda x: x**3,
    "pow.root.zeros": lambda x: x**0.5,
    "tanh.far": torch.tanh,
    "exp.far": lambda x: x.exp() / (x.exp() + 1),
    "erf.far": torch.erf,
    "trunc": lambda x: (x.floor() + x.sign()) * x + x.trunc(),
    "stop_gradient": lambda x: x.exp().detach() * x,

    "sum": torch.sum,
    "sum.axes": lambda x: x.sum((0, -1)),
    "sum.open": lambda x: x.sum(0).square(),
    "mean": torch.mean,
    "mean.axes": lambda x: x.mean((0, 1), keepdim=True) * x,
    "mean.open": lambda x: x.mean(0).square(),
    "max": torch.max,
    "max.axis": lambda x: x.amax(1),
    "max.ties": lambda x: x.amax(1),
    "max.all.ties": torch.max,
    "min.ties": lambda x: x.amin(0),
    "min.axes": lambda x: x.amin((0, 2)),
    "prod": torch.prod,
    "prod.axis": lambda x: x.prod(1),
    "prod.zeros": lambda x: x.prod(1),
    "var": torch.var,
    "var.axes": lambda x: x.var((0, 2), correction=0),
    "var.open": lambda x: x.var(0),
    "norm": torch.linalg.vector_norm,
    "norm.axis": lambda x: torch.linalg.vector_norm(x, dim=-1),
    "norm.zero": lambda x: torch.linalg.vector_norm(x, dim=1),
    "prod.open": lambda x: x.prod(0),
    "prod.long": lambda x: x.prod(1),
    "max.open": lambda x: x.amax(0),
    "sum.none": lambda x: x.square().sum(0),
    "cumsum.open": lambda x: x.cumsum(0).square(),
    "cumsum": lambda x: x.cumsum(1).square(),
    "sort": lambda x: x.sort(1, descending=True).values,
    "topk": lambda x: x.topk(2, 1).values,
    "sort.ties": lambda x: x.sort(dim=1, stable=True).values,
    "topk.ties": lambda x: x.sort(dim=0, stable=True, descending=True).values[:3],
    "sort.open": lambda x: x.sort(0).values,
    "softmax.hidden": lambda x, m: torch.where(seen(m), x, -torch.inf).softmax(-1),
    "log_softmax.hidden": log_softmax_hidden,
    "softmax": lambda x: x.softmax(1),
    "softmax.far": lambda x: x.softmax(-1),
    "softmax.open": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(0),
    "log_softmax.far": lambda x: x.log_softmax(-1),
    "logsumexp": lambda x: x.logsumexp(-1),

    "concat": lambda x, y: torch.cat([x, y, x], 1).square(),
    "stack": lambda x, y: torch.stack([x, y, x], -1).square(),
    "split": lambda x: weighed(x[:, :2].square()) + weighed(x[:, 2:].exp()),
    "chunk": lambda x: x[..., :2] * x[..., 2:],
    "slice": lambda x: x[:, 1::2].square(),
    "narrow": lambda x: x.narrow(1, 1, 3).exp(),
    "select": lambda x: x[:, -2] * x[:, 0],
    "dynamic_slice": lambda x, at: dynamic_slice(x, at, 2).square(),
    "dynamic_update": lambda x, part, at: dynamic_update(x, part, at).square(),
    "pad": lambda x: F.pad(x, (1, 3, 2, 0, 0, 1), value=0.5).square(),
    "flip": lambda x: x.flip((0, 2)) * x,
    "transpose": lambda x: x.transpose(-2, -1).square(),
    "permute": lambda x: x.permute(2, 0, 1).square(),
    "reshape": lambda x: x.reshape(6, -1).square(),
    "flatten": lambda x: x.flatten(1).softmax(1),
    "squeeze": lambda x: x.square(),
    "broadcast_to": lambda x: x.broadcast_to(3, 5, 4).square(),
    "take": lambda x, at: x.index_select(1, at.reshape(-1)).reshape(3, *at.shape, 4).square(),
    "gather": lambda x, at: x.gather(1, at).square(),
    "scatter.add": lambda x, at, y: x.index_add(1, at, y).square(),
    "scatter.set": lambda x, y: x.index_copy(1, torch.tensor([3, 0]), y).square(),
    **{f"scatter.{kind}": scattered(f) for kind, f in
       (("max", torch.maximum), ("min", torch.minimum), ("mul", torch.mul))},
    "concat.open": lambda x, y: torch.cat([x, y, x]).square(),
    "pad.open": lambda x: F.pad(x, (1, 0, 2, 1)).square(),
    "flip.open": lambda x: x * x.flip(0),
    "slice.open": lambda x: x[-4::2].square(),
    "take.open": lambda x, at: x[at].square(),
    "embedding.wide": lambda at, w: F.embedding(at, w).square(),
    "embedding": lambda at, w: F.embedding(at, w).square(),

    **{f"matmul{kind}": torch.matmul for kind in
       ("", ".batch", ".broadcast", ".right", ".left", ".vectors", ".row", ".column", ".open", ".wide", ".deep",
        ".none", ".open.depth", ".one")},
    "linear": F.linear,
    "linear.plain": F.linear,
    "conv1d": F.conv1d,
    "conv1d.all": lambda x, w: F.conv1d(x, w, None, 2, 3, 2, 2),
    "conv2d": lambda x, w, bias: F.conv2d(x, w, bias, padding=1),
    "conv2d.stride": lambda x, w: F.conv2d(x, w, stride=(2, 3)),
    "conv2d.dilation": lambda x, w: F.conv2d(x, w, padding=(0, 2), dilation=(3, 2)),
    "conv2d.groups": lambda x, w: F.conv2d(x, w, stride=2, padding=1, groups=2),
    "conv2d.depthwise": lambda x, w: F.conv2d(x, w, padding=1, groups=5),
    "conv2d.open": lambda x, w: F.conv2d(x, w, padding=1),
    "conv2d.one": lambda x, w: F.conv2d(x, w, stride=2),
    "conv2d.whole": F.conv2d,
    "conv2d.padded": lambda x, w: F.conv2d(x, w, stride=3, padding=4),
    "conv2d.multiplier": lambda x, w: F.conv2d(x, w, stride=2, padding=1, groups=4),
    "conv1d.open": lambda x, w: F.conv1d(x, w, stride=2, padding=1),
    "conv2d.wide": lambda x, w: F.conv2d(x, w, stride=2, padding=1),
    "conv3d": lambda x, w: F.conv3d(x, w, padding=1),
    "conv3d.all": lambda x, w: F.conv3d(x, w, None, (2, 1, 3), (1, 0, 2), (1, 2, 1), 2),
    "conv2d.patches": lambda x, w: F.conv2d(x, w, stride=4),
    "conv2d.open.all": lambda x, w: F.conv2d(x, w, stride=2, padding=1, groups=2),
    "second.conv2d.all": lambda x, w: sum(
        d.square().sum() for d in torch.autograd.grad(
            F.conv2d(x, w, stride=2, padding=1, groups=2).tanh().square().sum(), (x, w), create_graph=True)),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "max_pool2d.all": lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 0)),
    "max_pool2d.ties": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max_pool2d.open": lambda x: F.max_pool2d(x, 2),
    "max_pool2d.far": lambda x: F.max_pool2d(x, (5, 2), (2, 3), (2, 0)),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "avg_pool2d.counted": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "avg_pool2d.uncounted": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),

    "layer_norm": lambda x, w, bias: F.layer_norm(x, w.shape, w, bias),
    "layer_norm.axes": lambda x, w: F.layer_norm(x, w.shape, w, eps=0.1),
    "layer_norm.open": lambda x, w, bias: F.layer_norm(x, w.shape, w, bias),
    "layer_norm.equal": lambda x, w, bias: F.layer_norm(x, w.shape, w, bias),
    "layer_norm.wide": lambda x, w, bias: F.layer_norm(x, w.shape, w, bias),
    "rms_norm.zero": lambda x, w: F.rms_norm(x, w.shape, w, 1e-6),
    "rms_norm": lambda x, w: F.rms_norm(x, w.shape, w, 1e-6),
    "rms_norm.axes": lambda x, w: F.rms_norm(x, w.shape, w, 1e-6),
    # F.batch_norm gives no derivative of the mean and the variance.
    "batch_norm": lambda x, mean, variance, w, bias: (
        (x - mean[:, None, None]) / (variance[:, None, None] + 1e-5).sqrt() * w[:, None, None] + bias[:, None, None]),

    **{f"attention.{n}": attention() for n in (1, 7, 64, 65, 300)},
    **{f"attention.causal.{n}": attention(causal=True) for n in (1, 7, 64, 65, 300)},
    **{f"attention.mask.{n}": attention(mask=lambda m: m) for n in (1, 7, 64, 65, 300)},
    **{f"attention.bool.{n}": attention(mask=seen) for n in (1, 7, 64, 65, 300)},
    "attention.mask.rows": attention(mask=lambda m: m),
    "attention.bool": attention(mask=seen),
    "attention.causal.longer": attention(causal=True),
    "attention.far": attention(),
    "attention.grouped": attention(causal=True, scale=0.5, grouped=True),
    "attention.open": attention(causal=True),
    "attention.open.long": attention(causal=True),

    "cross_entropy": F.cross_entropy,
    "cross_entropy.ignored": cross_entropy(ignore_index=2),
    "cross_entropy.smoothed": cross_entropy(label_smoothing=0.1),
    "cross_entropy.all": cross_entropy(ignore_index=2, label_smoothing=0.2),
    "cross_entropy.sum": cross_entropy(reduction="sum"),
    "cross_entropy.image": cross_entropy(reduction="none"),
    "cross_entropy.open": cross_entropy(label_smoothing=0.1),
    "cross_entropy.none": cross_entropy(ignore_index=0),
    "cross_entropy.wide": F.cross_entropy,
    "linear_cross_entropy": linear_cross_entropy(),
    "linear_cross_entropy.all": linear_cross_entropy(ignore_index=2, label_smoothing=0.2),
    "linear_cross_entropy.sum": linear_cross_entropy(reduction="sum"),
    "linear_cross_entropy.open": linear_cross_entropy(label_smoothing=0.1),
    "linear_cross_entropy.wide": linear_cross_entropy(),
    "l1_loss.ties": F.l1_loss,
    "cross_entropy.far": F.cross_entropy,
    "mse_loss": F.mse_loss,
    "l1_loss": lambda x, y: F.l1_loss(x, y, reduction="sum"),
    "binary_cross_entropy": F.binary_cross_entropy_with_logits,

    "if_else.yes": branch,
    "if_else.no": branch,
    "scan.lstm": lstm,
    "scan.lstm.unrolled": lstm,
    "scan.product": scanned_product,
    "scan.open": scanned_branch,
    "scan.branch": scanned_branch,
    "scan.last": scanned_last,
    "scan.reverse": lambda x, c: scanned_product(x.flip(0), c).flip(0),
    "scan.whole": carried_count,
    "second.scan.kept": second_of_kept,
    "second.scan": second_of_scan,
    "second.if_else": lambda a, b: derivative((a.exp() * b if a.sum() > 0 else (a * b).sin()).sum(), a).square(),
    "second.max_pool2d": lambda x: derivative(weighed(F.max_pool2d(x, 2).square()), x).square(),
    "second.batch_norm": lambda x: derivative(
        weighed((F.batch_norm(x, None, None, training=True) + 1).square()), x).square(),
    "vjp": lambda x, d: d * x.cos() + d.square() * x.exp(),
    "with_gradient": Whole.apply,
    "second.tanh": lambda x: derivative((x.tanh() * x).sum(), x).square(),
    "second.softmax": lambda x: derivative(weighed(x.softmax(1)), x),
    "second.penalty": penalty,
    "second.conv2d": lambda x, w: derivative(F.conv2d(x, w, padding=1).tanh().sum(), x).square(),
    "second.layer_norm": lambda x, w, bias: derivative(
        weighed(F.layer_norm(x, w.shape, w, bias).square()), x).square(),
    "second.attention": second_of_attention,
    "second.attention.long": second_of_attention,
    "third.pow": third,
}


class Attention(nn.MultiheadAttention):
    def __init__(self, causal=False):
        super().__init__(8, 2, batch_first=True)
        self.causal = causal

    def forward(self, x):
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1) if self.causal else None
        return super().forward(x, x, x, attn_mask=hidden, need_weights=False)[0]


class Mlp(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        return self.linear2(F.gelu(self.linear1(x)))


class Block(nn.Module):
    def __init__(self, hidden, causal):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(8), nn.LayerNorm(8)
        self.self_attn, self.mlp = Attention(causal), Mlp(8, hidden)

    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(2, 6, 3, 1, 1, bias=False), nn.Conv2d(6, 8, 3, 2, bias=False)
        self.bn1, self.bn2, self.head = nn.BatchNorm2d(6), nn.BatchNorm2d(8), nn.Linear(8, 5)

    def forward(self, x, target):
        y = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        return F.cross_entropy(self.head(F.silu(self.bn2(self.conv2(y))).mean((2, 3))), target)


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.one = nn.Embedding(11, 8), Block(32, True)

    def forward(self, at, target):
        return F.cross_entropy((self.one(self.tokens(at)) @ self.tokens.weight.T).transpose(1, 2), target)


def recurrent(kind, **options):
    """The loss is of all results."""
    class Whole(kind):
        def forward(self, x, *states):
            y, last = super().forward(x, states if len(states) == 2 else states[0])
            return weighed(y) + sum(weighed(s) for s in (last if isinstance(last, tuple) else [last]))

    return lambda: Whole(3, 4, **options)


EVERYTHING = {"num_layers": 2, "batch_first": True, "bidirectional": True}


class Output(nn.LSTM):
    def forward(self, x):
        return super().forward(x)[0]


MODULES = {  # what makes the module, and whether it is in training
    "nn.batch_norm1d.training": (lambda: nn.BatchNorm1d(3), True),
    "nn.batch_norm1d.eval": (lambda: nn.BatchNorm1d(3), False),
    "nn.batch_norm2d.training": (lambda: nn.BatchNorm2d(4), True),
    "nn.batch_norm2d.eval": (lambda: nn.BatchNorm2d(4), False),
    "nn.attention": (Attention, False),
    "nn.mlp": (lambda: Mlp(6, 10), True),
    "nn.block": (lambda: Block(32, False), True),
    "nn.block.causal": (lambda: Block(12, True), False),
    "nn.conv_net.training": (ConvNet, True),
    "nn.conv_net.eval": (ConvNet, False),
    "nn.tokens": (Tokens, True),
    "nn.lstm": (recurrent(nn.LSTM), False),
    "nn.lstm.plain": (recurrent(nn.LSTM, bias=False), False),
    "nn.lstm.all": (recurrent(nn.LSTM, **EVERYTHING), True),
    "nn.lstm.open": (recurrent(nn.LSTM), False),
    "nn.lstm.one": (recurrent(nn.LSTM), False),
    "nn.lstm.long": (recurrent(nn.LSTM), False),
    "nn.lstm.zeros": (lambda: Output(3, 4), False),
    "nn.gru": (recurrent(nn.GRU), False),
    "nn.gru.plain": (recurrent(nn.GRU, bias=False), False),
    "nn.gru.all": (recurrent(nn.GRU, **EVERYTHING), True),
    "nn.gru.open": (recurrent(nn.GRU), False),
}

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1),
    "sgd.momentum": lambda p: torch.optim.SGD(p, 0.05, 0.9),
    "sgd.nesterov": lambda p: torch.optim.SGD(p, 0.05, 0.9, nesterov=True),
    "sgd.decay": lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.02),
    "sgd.all": lambda p: torch.optim.SGD(p, 0.05, 0.8, weight_decay=0.02, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, 0.02),
    "adam.all": lambda p: torch.optim.Adam(p, 0.02, (0.8, 0.95), 1e-4, 0.02),
    "adamw": lambda p: torch.optim.AdamW(p, 0.02),
    "adamw.decay": lambda p: torch.optim.AdamW(p, 0.02, weight_decay=0.3),
    "ema": lambda p: torch.optim.SGD(p, 0.1),
    "clip_grad_norm": lambda p: torch.optim.SGD(p, 0.1),
}


def numbered(files, prefix):
    return [files[f"{prefix}.{i}"] for i in range(sum(n.startswith(prefix + ".") for n in files))]


def tensor(a):
    return torch.from_numpy(a.astype(np.float64) if a.dtype == np.float32 else a)


def states(files, prefix):
    """Those of the module "net" (or of its member "net.m"), under PyTorch's names."""
    found = {n.removeprefix(prefix + ".net."): tensor(a) for n, a in files.items() if n.startswith(prefix + ".net.")}
    return {n.removeprefix("m."): a for n, a in found.items()}


def derived(name, files):
    """{file: what PyTorch has for it}"""
    inputs = [tensor(a) for a in numbered(files, "in")]
    floats = [i for i, x in enumerate(inputs) if x.is_floating_point()]
    for i in floats:
        inputs[i].requires_grad_()
    module = None
    if name in MODULES:
        make, training = MODULES[name]
        module = make().double().train(training)
        missing = module.load_state_dict(states(files, "before"), strict=False)
        wrong = [n for n in missing.missing_keys if not n.endswith("num_batches_tracked")] + missing.unexpected_keys
        if wrong:
            raise ValueError(f"states differ: {wrong}")
    y = (module or FUNCTIONS[name])(*inputs)
    loss = weighed(y) if y.dim() else y
    parameters = dict(module.named_parameters()) if module else {}
    of = [inputs[i] for i in floats] + list(parameters.values())
    d = torch.autograd.grad(loss, of, allow_unused=True)
    member = "" if any(n == f"d.net.{p}" for n in files for p in parameters) else "m."
    names = [f"d.{i}" for i in floats] + [f"d.net.{member}{n}" for n in parameters]
    out = {n: torch.zeros_like(x) if g is None else g for n, x, g in zip(names, of, d)}
    out["loss"] = loss
    if module:
        out |= {f"after.net.{member}{n}": t for n, t in module.state_dict().items() if "num_batches" not in n}
    return out


def trained(name, files):
    x, y = (tensor(a) for a in numbered(files, "in"))
    net = nn.Module()
    net.first, net.last = nn.Linear(4, 8), nn.Linear(8, 2)
    net.double().load_state_dict(states(files, "before"))
    optimizer = OPTIMIZERS[name](net.parameters())
    means = {n: p.detach().clone() for n, p in net.named_parameters()}
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = F.mse_loss(net.last(torch.tanh(net.first(x))), y)
        loss.backward()
        losses.append(loss.detach())
        if name == "clip_grad_norm":
            nn.utils.clip_grad_norm_(net.parameters(), 0.3)
        optimizer.step()
        for n, p in net.named_parameters():
            means[n] = means[n] * 0.9 + p.detach() * 0.1
    out = {"loss": torch.stack(losses)}
    for n, p in net.named_parameters():
        out[f"after.net.{n}"] = p
        for what, moment in optimizer.state[p].items():
            if what != "step" and moment is not None:
                out[f"after.by.net.{n}.{what}"] = moment
        if name == "ema":
            out[f"after.mean.net.{n}"] = means[n]
    return out


def differences(files, expected):
    """{file: its difference, as a share of its scale}; infinite where NaN or an infinity is at another place."""
    largest = max([float(p.abs().max()) for n, p in expected.items() if n.startswith("d.") and p.numel()], default=0)
    out = {}
    for name, p in expected.items():
        p, got = p.detach().numpy(), files[name].astype(np.float64)
        finite = np.isfinite(p)
        if p.shape != got.shape or not np.array_equal(p[~finite], got[~finite], equal_nan=True):
            out[name] = np.inf
            continue
        p, got = p[finite], got[finite]
        least = 1e-2 * largest if name.startswith("d.") else 1
        scale = max(np.abs(p).max(initial=0), least)
        difference = np.abs(got - p).max(initial=0)
        out[name] = 0.0 if difference == 0 else difference / scale if scale > 0 else np.inf
        if np.isnan(out[name]):
            out[name] = np.inf
    return out


def is_right(found):
    return all(d <= TOLERANCE for d in found.values())


def plant(files, expected):
    """Changes the sign of the largest element of each gradient in turn: how often, and where it is not found."""
    count, missed = 0, []
    for name in expected:
        if not name.startswith("d.") or not np.any(files[name]) or not np.isfinite(files[name]).all():
            continue
        wrong = files[name].copy()
        at = np.unravel_index(np.abs(wrong).argmax(), wrong.shape)
        wrong[at] *= -1
        count += 1
        if is_right(differences(files | {name: wrong}, expected)):
            missed.append(name)
    return count, missed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--plant")
    options = parser.parse_args()
    torch.set_num_threads(1)
    begin = time.time()
    failures, known, planted, agree, worst = 0, 0, 0, 0, (0.0, "")
    with tempfile.TemporaryDirectory() as directory:
        folder = options.keep or pathlib.Path(directory)
        computed = subprocess.run([options.program.parent / "peer_derivatives", folder, *options.only], text=True,
                                  stdout=subprocess.PIPE)
        if computed.returncode not in (0, 1):  # 1: cases without results, which are found below
            sys.exit(f"derivatives: peer_derivatives ended with {computed.returncode}\n{computed.stdout}")
        said = dict(line.split(": ", 1) for line in computed.stdout.splitlines() if ": " in line)
        ours = [*FUNCTIONS, *MODULES, *(f"optimizer.{n}" for n in OPTIMIZERS)]
        theirs = sorted(p.name for p in folder.iterdir())
        for name in sorted({*theirs, *(options.only or ours)}):
            try:
                files = {p.stem: np.load(p) for p in (folder / name).glob("*.npy")}
                of = name.removeprefix("optimizer.")
                expected = trained(of, files) if of != name else derived(name, files)
                if extra := [n for n in files if n.startswith("d.") and n not in expected]:
                    raise ValueError(f"{extra} have no counterpart")
                if options.plant == name:
                    key = next(n for n in expected if n.startswith("d.") and np.any(files[n]))
                    files[key] = -files[key]
                found = differences(files, expected)
                wrong = ", ".join(f"{n} by {d:.2g}" for n, d in found.items() if d > TOLERANCE)
            except (LookupError, TypeError, ValueError, RuntimeError, StopIteration) as e:
                wrong = f"not compared: {said.get(name) or f'{type(e).__name__}: {e}'}"
            if (name in KNOWN) != bool(wrong):
                failures += 1
                print(f"{name}: {'differs: ' + wrong if wrong else 'agrees, but is listed in KNOWN'}")
                continue
            if wrong:
                known += 1
                continue
            agree += 1
            worst = max(worst, *((d, f"{n} of {name}") for n, d in found.items()))
            count, unseen = plant(files, expected)
            planted += count - len(unseen)
            if unseen:
                failures += 1
                print(f"{name}: a wrong sign is not found in {unseen}")
    print(f"derivatives: {agree} cases agree with PyTorch {torch.__version__}, {known} differ in a known way, "
          f"{failures} fail; the largest difference of those that agree is {worst[0]:.1e} ({worst[1]}); "
          f"{planted} planted errors were found; {time.time() - begin:.0f} s")
    return failures != 0


sys.exit(main())
