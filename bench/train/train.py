"""Times steps of training (forward, derivatives, AdamW) of bench_train and of PyTorch in turn, from the same states and
inputs, and compares the losses. Prints a JSON line for each network: milliseconds per step (the least and the median of
the rounds), the same of the processor's time, which other programs disturb less, the ratios of the medians, and the
losses after 1 and 10 steps.
usage: train.py BENCH_TRAIN [NAME...] [--threads N] [--rounds N] [--seconds S] [--compile] [--compiled-torch]"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class Mlp(nn.Module):
    def __init__(self, *widths):
        super().__init__()
        self.count = len(widths) - 1
        for i in range(self.count):
            setattr(self, f"fc{i}", nn.Linear(widths[i], widths[i + 1]))

    def forward(self, x):
        for i in range(self.count):
            x = getattr(self, f"fc{i}")(x)
            if i + 1 < self.count:
                x = torch.relu(x)
        return x


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.head = Mlp(400, 120, 84, 10)

    def forward(self, x):
        x = F.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = F.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.head(x.flatten(1))


def convolution(inputs, outputs, kernel, stride):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = convolution(inputs, outputs, 3, stride)
        self.conv2 = convolution(outputs, outputs, 3, 1)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.down = None
        if inputs != outputs or stride != 1:
            self.down = convolution(inputs, outputs, 1, stride)
            self.bn_down = nn.BatchNorm2d(outputs)

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (self.bn_down(self.down(x)) if self.down else x))


class OneBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block(16, 16, 1)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.block(x).mean((2, 3)))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = convolution(3, 16, 3, 1)
        self.bn = nn.BatchNorm2d(16)
        self.block1 = Block(16, 16, 1)
        self.block2 = Block(16, 32, 2)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.block2(self.block1(torch.relu(self.bn(self.conv(x))))).mean((2, 3)))


CASES = {
    "tiny_mlp": lambda: Mlp(4, 32, 32, 3),
    "mlp": lambda: Mlp(784, 512, 10),
    "lenet": LeNet,
    "block": OneBlock,
    "resnet": ResNet,
}


class Torch:
    def __init__(self, name, folder, is_compiled, fused):
        self.net = CASES[name]()
        states = {k: v for k, v in self.net.state_dict().items() if not k.endswith("num_batches_tracked")}
        for key, value in states.items():
            value.copy_(torch.from_numpy(np.load(folder / f"net.m.{key}.npy")))
        self.x, self.y = (torch.from_numpy(np.load(folder / f"{k}.npy")) for k in "xy")
        # The weight decay is the default of hone's AdamW.
        self.adam = torch.optim.AdamW(self.net.parameters(), lr=1e-3, weight_decay=0.01, fused=fused)
        self.call = torch.compile(self.net) if is_compiled else self.net
        self.net.train()

    def run(self, steps):
        start, busy = time.perf_counter(), time.process_time()
        for _ in range(steps):
            self.adam.zero_grad()
            loss = F.cross_entropy(self.call(self.x), self.y)
            loss.backward()
            self.adam.step()
        took, used = time.perf_counter() - start, time.process_time() - busy
        return 1e3 * took / steps, 1e3 * used / steps, loss.item()


class Hone:
    def __init__(self, program, name, folder, options):
        self.process = subprocess.Popen(
            [program, name, folder, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise SystemExit(f"{program} {name} failed")

    def run(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return [float(n) for n in self.process.stdout.readline().split()]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each round of each side")
    parser.add_argument("--compile", action="store_true", help="measure nothing before")
    parser.add_argument("--compiled-torch", action="store_true", help="torch.compile")
    args = parser.parse_intermixed_args()
    torch.set_num_threads(args.threads)
    for name in args.names or CASES:
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place)
            options = ["--threads", str(args.threads)] + ["--compile"] * args.compile
            start = time.perf_counter()
            hone = Hone(args.program, name, folder, options)
            compiled = time.perf_counter() - start
            peer = Torch(name, folder, args.compiled_torch, True)
            first = [side.run(1)[2] for side in (hone, peer)]  # and again after all steps
            early = [side.run(9)[2] for side in (hone, peer)]
            steps = max(1, int(1e3 * args.seconds / min(hone.run(5)[0], peer.run(5)[0])))
            steps = min(steps, max(1, int(4e3 * args.seconds / max(hone.run(2)[0], peer.run(2)[0]))))
            times, busy = [[], []], [[], []]
            for _ in range(args.rounds):
                for i, side in enumerate((hone, peer)):
                    ms, used, _ = side.run(steps)
                    times[i].append(ms)
                    busy[i].append(used)
            middle = [statistics.median(ms) for ms in times]
            used = [statistics.median(ms) for ms in busy]
            print(json.dumps({
                "name": name, "threads": args.threads, "hone_ms": round(middle[0], 4),
                "torch_ms": round(middle[1], 4), "times_torch": round(middle[1] / middle[0], 2),
                "hone_least": round(min(times[0]), 4), "torch_least": round(min(times[1]), 4),
                "hone_cpu_ms": round(used[0], 4), "torch_cpu_ms": round(used[1], 4),
                "times_torch_cpu": round(used[1] / used[0], 2),
                "losses_1": first, "losses_10": early, "compiled_s": round(compiled, 1)}), flush=True)
            hone.process.stdin.close()
            hone.process.wait()


main()
