#!/usr/bin/env python3
"""The cases of bench_gpu in PyTorch, eager and compiled: a line of JSON for each, with medians of whole
runs from the call until the device is idle, as bench_gpu times them.
usage: bench/gpu/peer.py [--half f16] [CASE...]   the type of 16 bits is bf16 otherwise"""

import functools
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F

torch.set_grad_enabled(False)
HALF = "f16" if sys.argv[1:2] == ["--half"] else "bf16"
DTYPES = {"f32": torch.float32, HALF: torch.float16 if HALF == "f16" else torch.bfloat16}


def tensor(dtype, *dims):
    return (0.1 * torch.randn(*dims, device="cuda")).to(DTYPES[dtype])


def median_us(f):
    for _ in range(5):
        f()
    torch.cuda.synchronize()
    times = []
    while len(times) < 10 or (sum(times) < 0.5e6 and len(times) < 2000):
        start = time.perf_counter()
        f()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


def rows(name, dtype, m, n, f, *more):
    x = tensor(dtype, m, n)
    return f"{name}_{dtype}_{m}x{n}", f, (x, *[make(x) for make in more])


def attention(backend, is_causal, q, k, v):
    with torch.nn.attention.sdpa_kernel(backend):
        return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)


def attention_cases():
    """Each by PyTorch's own kernel (flash) and by cuDNN; f32 by the one that takes it."""
    backend = torch.nn.attention.SDPBackend
    for d, heads, length, row in ((HALF, 96, 2048, 64), (HALF, 64, 8192, 128), (HALF, 12, 128, 64),
                                  (HALF, 8, 16384, 64), ("f32", 16, 2048, 64)):
        for is_causal in (False, True):
            for name, by in (("flash", backend.FLASH_ATTENTION), ("cudnn", backend.CUDNN_ATTENTION),
                             ("efficient", backend.EFFICIENT_ATTENTION)):
                if (d == "f32") == (name == "efficient"):
                    yield lambda by=by, name=name, d=d, heads=heads, length=length, row=row, c=is_causal: (
                        f"attention_{'causal_' if c else ''}{d}_{heads}x{length}x{row} {name}",
                        functools.partial(attention, by, c),
                        tuple(tensor(d, 1, heads, length, row) for _ in range(3)))


def cases():
    def weight(x):
        return torch.randn_like(x[0])
    for d in DTYPES:
        m, n = 8192, 16384
        yield lambda: rows("gelu", d, m, n, F.gelu)
        yield lambda: rows("swiglu", d, m, n, lambda x, g: F.silu(x) * g, torch.randn_like)
        yield lambda: rows("layer_norm", d, m, n,
                           lambda x, w, b: F.layer_norm(x, x.shape[1:], w, b, 1e-5), weight, weight)
        yield lambda: rows("rms_norm", d, m, n, lambda x, w: F.rms_norm(x, x.shape[1:], w, 1e-5), weight)
        yield lambda: rows("softmax", d, m, n, lambda x: F.softmax(x, 1))
        size = 4 if d == "f32" else 2
        for row in (256, 1024, 4096, 16384, 32768, 65536, 131072, 262144):
            yield lambda row=row: rows("sweep_softmax", d, (1 << 29) // size // row, row,
                                       lambda x: F.softmax(x, 1))
    yield lambda: rows("gelu", "f32", 4096, 1024, F.gelu)
    for d, m, n, k in (("f32", 512, 1024, 2048), (HALF, 2048, 2048, 2048), (HALF, 8192, 4096, 16384),
                       (HALF, 16, 4096, 4096)):
        yield lambda d=d, m=m, n=n, k=k: (
            f"linear_gelu_{d}_{m}x{n}x{k}",
            lambda x, w, b: F.gelu(torch.addmm(b, x, w), approximate="tanh"),
            (tensor(d, m, k), tensor(d, k, n), tensor(d, n)))

    def linear_in_a_row(*tensors):
        return [F.gelu(torch.addmm(b, x, w), approximate="tanh") for x, w, b in zip(*[iter(tensors)] * 3)]
    yield lambda: (f"linear_gelu_{HALF}_16x4096x4096_in_a_row_20", linear_in_a_row,
                   tuple(t for _ in range(20)
                         for t in (tensor(HALF, 16, 4096), tensor(HALF, 4096, 4096), tensor(HALF, 4096))))

    def linear_tf32(x, w, b):
        return F.gelu(torch.addmm(b, x, w), approximate="tanh")
    yield lambda: ("linear_gelu_tf32_512x1024x2048", linear_tf32,
                   (tensor("f32", 512, 2048), tensor("f32", 2048, 1024), tensor("f32", 1024)))

    for m, n, k in ((4096, 4096, 4096), (16, 4096, 4096)):
        yield lambda m=m, n=n, k=k: (f"matmul_{HALF}_{m}x{n}x{k}", torch.matmul, (tensor(HALF, m, k), tensor(HALF, k, n)))

    yield from attention_cases()

    def small(x, w):
        for _ in range(40):
            x = torch.tanh(x @ w) * 0.5 + x
            x = x - torch.relu(x) * 0.1
        return x
    yield lambda: ("small_ops_200", small, (tensor("f32", 64, 256), tensor("f32", 256, 256)))
    yield decode


def decode():
    """One token of GPT-2 124M, with caches of 1024 keys and values that are updated in place."""
    layers, heads, depth, length, words, width = 12, 12, 64, 1024, 50257, 768

    def weight(*dims):
        return tensor(HALF, *dims) * 0.02
    table, places = weight(words, width), weight(length, width)

    def norm():
        return weight(width), weight(width)
    blocks = [(*norm(), weight(width, 3 * width), weight(3 * width), weight(width, width), weight(width), *norm(),
               weight(width, 4 * width), weight(4 * width), weight(4 * width, width), weight(width),
               weight(1, heads, length, depth), weight(1, heads, length, depth)) for _ in range(layers)]
    last = norm()
    numbers = torch.arange(length, device="cuda")
    for block in blocks:
        for x in block:
            torch._dynamo.mark_static_address(x)

    def step(token, position):
        x = table[token] + places[position]
        mask = (numbers <= position).view(1, 1, 1, length)
        for w1, b1, qkv, qkv_b, out, out_b, w2, b2, up, up_b, down, down_b, keys, values in blocks:
            h = torch.addmm(qkv_b, F.layer_norm(x, (width,), w1, b1), qkv)
            q, k, v = (p.view(1, heads, 1, depth) for p in h.chunk(3, 1))
            keys.index_copy_(2, position, k)
            values.index_copy_(2, position, v)
            a = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask).view(1, width)
            x = x + torch.addmm(out_b, a, out)
            h = F.gelu(torch.addmm(up_b, F.layer_norm(x, (width,), w2, b2), up), approximate="tanh")
            x = x + torch.addmm(down_b, h, down)
        return F.layer_norm(x, (width,), *last) @ table.T
    token = torch.zeros(1, dtype=torch.long, device="cuda")
    return f"gpt2_decode_{HALF}", step, (token, token.clone())


def main():
    wanted = sys.argv[3:] if sys.argv[1:2] == ["--half"] else sys.argv[1:]
    for make in cases():
        name, f, inputs = make()
        if wanted and not any(w in name for w in wanted):
            continue
        line = {"case": name, "torch": torch.__version__}
        torch.backends.cuda.matmul.allow_tf32 = "tf32" in name
        times = int(name.rpartition("_in_a_row_")[2]) if "_in_a_row_" in name else 1
        line["eager_us"] = median_us(lambda: f(*inputs)) / times
        if name.startswith("attention"):
            print(json.dumps(line), flush=True)
            del inputs
            continue
        torch.compiler.reset()
        mode = {"mode": "reduce-overhead"} if name.startswith(("small", "gpt2")) or times > 1 else {}
        start = time.perf_counter()
        compiled = torch.compile(f, **mode)
        compiled(*inputs)
        torch.cuda.synchronize()
        line["cold_s"] = time.perf_counter() - start
        line["compiled_us"] = median_us(lambda: compiled(*inputs)) / times
        print(json.dumps(line), flush=True)
        del inputs


if __name__ == "__main__":
    main()
