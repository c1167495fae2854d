#!/usr/bin/env python3
"""Whole models in PyTorch and in hone: exported to ONNX with random weights, then timed by both. hone_ms is
timed on inputs that lie on the GPU, as PyTorch's are; hone_plan copies its inputs and results in each run. A line
of JSON for each. First answers are of whole processes, with empty caches: hone_first_s of a model, hone_plan_first_s of
a plan file, whose results differ from PyTorch's by hone_error, as a share of the largest; PyTorch's is
torch_import_s + torch_cold_s.
MODELs: all of MODELS otherwise."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import torch

from peer import median_us

torch.set_grad_enabled(False)


def resnet50(batch):
    import torchvision
    model = torchvision.models.resnet50(weights=None).eval().half().cuda().to(memory_format=torch.channels_last)
    x = torch.randn(batch, 3, 224, 224, device="cuda").half().to(memory_format=torch.channels_last)
    return model, (x,)


def bert():
    import transformers
    config = transformers.BertConfig(attn_implementation="eager")
    model = transformers.BertModel(config, add_pooling_layer=False).eval().half().cuda()

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids):
            return self.model(input_ids=ids).last_hidden_state
    return Encoder(), (torch.randint(0, 30000, (1, 128), device="cuda"),)


def gpt2():
    import transformers
    config = transformers.GPT2Config(attn_implementation="eager", use_cache=False)
    model = transformers.GPT2LMHeadModel(config).eval().half().cuda()

    class Forward(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids):
            # Without a mask the exporter meets an operator that ONNX lacks.
            return self.model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
    return Forward(), (torch.randint(0, 50000, (1, 128), device="cuda"),)


MODELS = {"resnet50_fp16_bs1": lambda: resnet50(1), "bert_base_fp16_s128": bert, "gpt2_fp16_s128": gpt2,
          "resnet50_fp16_bs64": lambda: resnet50(64)}


STRATEGIES = {"cuda": "cuda,auto", "vulkan": "vulkan"}


def run(command, limit):
    """(output, None), or (None, why not) where it fails or takes more than so many seconds."""
    try:
        r = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None, f"takes more than {limit} s"
    return (r.stdout, None) if r.returncode == 0 else (None, r.stderr[-1500:])


def first_answer(command, expected, limit):
    """(seconds or why not, the largest difference as a share of the largest number) of a process that writes its
    result to the directory that ends the command."""
    folder = pathlib.Path(command[-1])
    start = time.monotonic()
    _, why = run(command, limit)
    took = time.monotonic() - start
    if why:
        return why, None
    got = np.load(next(folder.glob("*.npy"))).astype(np.float64)
    return took, float(np.abs(got - expected).max() / np.abs(expected).max())


def hone(program, backend, file, expected, line, o):
    plan, limit = file.with_suffix(".hone"), o.limit
    given = ["-i", file.with_suffix(".npy"), "-o", file.with_suffix(".results")]
    line["hone_first_s"], line["hone_error"] = first_answer(
        [program, "run", file, "--strategy", backend, "--verify", "none", "--no-cache", *given], expected, limit)
    start = time.monotonic()
    out, why = run([program, "optimize", file, "--strategies", STRATEGIES[backend], "--verify", "kernels",
                    "--budget", str(o.budget), "--rounds", "10", "-o", plan, "--json"], limit)
    line["hone_optimize_s"] = time.monotonic() - start
    if why:
        line["hone_failure"] = why
        return
    line["hone_ms"] = {s["name"]: s["failure"] or s["ms"] for s in json.loads(out)["strategies"]}
    line["hone_plan_first_s"], line["hone_plan_error"] = first_answer(
        [pathlib.Path(program).parent / "hone-run", plan, *given], expected, limit)
    out, why = run([program, "bench", plan, "--duration", "1", "--json"], limit)
    line["hone_plan"] = why or json.loads(out)
    out, why = run([program, "inspect", plan, "--json"], limit)
    line["hone_devices"] = why or json.loads(out).get("devices")


def compile_and_time(make, line):
    model, inputs = make()
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    line["torch_import_s"] = time.perf_counter() - start
    start = time.perf_counter()
    compiled = torch.compile(model, mode="reduce-overhead")
    compiled(*inputs)
    torch.cuda.synchronize()
    line["torch_cold_s"] = time.perf_counter() - start
    line["compiled_us"] = median_us(lambda: compiled(*inputs))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("program", metavar="HONE")
    p.add_argument("folder", metavar="DIR", type=pathlib.Path)
    p.add_argument("--backend", choices=STRATEGIES, default="cuda")
    p.add_argument("--eager", action="store_true", help="without torch.compile, which takes minutes")
    p.add_argument("--limit", type=float, default=300, help="seconds of each command of hone")
    p.add_argument("--budget", type=float, default=40, help="seconds in which `hone optimize` may time candidates")
    p.add_argument("wanted", metavar="MODEL", nargs="*")
    o = p.parse_intermixed_args()
    folder, wanted = o.folder, o.wanted
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["CUDA_CACHE_DISABLE"] = "1"  # of NVRTC
    for name, make in MODELS.items():
        if wanted and name not in wanted:
            continue
        line = {"model": name}
        try:
            model, inputs = make()
            line["eager_us"] = median_us(lambda: model(*inputs))
            file = folder / f"{name}.onnx"
            plain = [x.contiguous() for x in inputs]
            np.save(file.with_suffix(".npy"), plain[0].cpu().numpy())
            expected = model(*inputs).double().cpu().numpy()
            torch.onnx.export(model.to(memory_format=torch.contiguous_format), tuple(plain), str(file), dynamo=False,
                              opset_version=17)
            if not o.eager:
                compile_and_time(make, line)
            hone(o.program, o.backend, file, expected, line, o)
        except Exception as e:
            line["failure"] = repr(e)[-1500:]
        print(json.dumps(line), flush=True)


main()
