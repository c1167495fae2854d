#!/usr/bin/env python3
"""Architectures with random weights, exported to ONNX: for tools/gpu-check's parts that optimise many models.
usage: bench/gpu/exports.py DIR [NAME...]   writes NAME.onnx, NAME_K.npy and NAME_expected.npy (PyTorch's first
result) to DIR, prints a line of JSON for each; without names all. `--list` prints the names of REPEATED and OTHERS."""

import json
import pathlib
import sys
import warnings

HALF = "f16"


def vision(name, size=224, batch=1, **options):
    def make(torch):
        import torchvision
        return getattr(torchvision.models, name)(weights=None, **options), [torch.randn(batch, 3, size, size)]
    return make


def segmentation(name, size=224):
    def make(torch):
        import torchvision
        model = getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None, num_classes=8)
        return First(torch, model), [torch.randn(1, 3, size, size)]
    return make


def video(name):
    def make(torch):
        import torchvision
        return getattr(torchvision.models.video, name)(weights=None), [torch.randn(1, 3, 8, 112, 112)]
    return make


def timm_model(name, size=224):
    def make(torch):
        import timm
        return timm.create_model(name, pretrained=False), [torch.randn(1, 3, size, size)]
    return make


def First(torch, model, *names):
    """The model's first result; `names` are its parameters, otherwise by position."""
    class Wrapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *args):
            out = self.model(**dict(zip(names, args))) if names else self.model(*args)
            return next(iter(out.values())) if isinstance(out, dict) else out[0]
    return Wrapped()


def text(model, config, length=128, attention="eager", has_mask=True, **options):
    """A model of transformers on ids; its mask is all ones."""
    def make(torch):
        import transformers
        c = getattr(transformers, config)(**options)
        c.use_cache = False
        made = getattr(transformers, model)._from_config(c, attn_implementation=attention)
        ids = torch.randint(0, min(c.vocab_size, 1000), (1, length))
        if not has_mask:
            return First(torch, made, "input_ids"), [ids]
        return First(torch, made, "input_ids", "attention_mask"), [ids, torch.ones_like(ids)]
    return make


def pixels(model, config, size=224, **options):
    def make(torch):
        import transformers
        made = getattr(transformers, model)(getattr(transformers, config)(**options))
        return First(torch, made, "pixel_values"), [torch.randn(1, 3, size, size)]
    return make


def conformer(torch):
    import torchaudio
    model = torchaudio.models.Conformer(input_dim=144, num_heads=4, ffn_dim=576, num_layers=4,
                                        depthwise_conv_kernel_size=31)
    return First(torch, model), [torch.randn(1, 200, 144), torch.tensor([200])]


def lstm(torch):
    return First(torch, torch.nn.LSTM(512, 512, 2, batch_first=True)), [torch.randn(4, 100, 512)]


# Those that tools/gpu-check's part `stress` optimises again and again.
REPEATED = {
    "mobilenet_v2": vision("mobilenet_v2"),
    "convnext_tiny": vision("convnext_tiny"),
    "t5_small_encoder": text("T5EncoderModel", "T5Config", 256, "sdpa", False, num_heads=8),
    "resnet50": vision("resnet50"),
}
OTHERS = {
    "efficientnet_b0": vision("efficientnet_b0"),
    "regnet_y_400mf": vision("regnet_y_400mf"),
    "shufflenet_v2": vision("shufflenet_v2_x1_0"),
    "mnasnet": vision("mnasnet1_0"),
    "densenet121": vision("densenet121"),
    "googlenet": vision("googlenet", aux_logits=False, init_weights=False),
    "alexnet": vision("alexnet"),
    "vit_b_16": vision("vit_b_16"),
    "maxvit_t": vision("maxvit_t"),
    "deeplabv3_mobilenet": segmentation("deeplabv3_mobilenet_v3_large"),
    "r3d_18": video("r3d_18"),
    "mixer": timm_model("mixer_s32_224"),
    "ghostnet": timm_model("ghostnet_100"),
    "levit": timm_model("levit_128s"),
    "xcit": timm_model("xcit_nano_12_p16_224"),
    "poolformer": timm_model("poolformer_s12"),
    "res2net": timm_model("res2net50_26w_4s"),
    "pvt_v2": timm_model("pvt_v2_b0"),
    "fastvit": timm_model("fastvit_t8", 256),
    "edgenext": timm_model("edgenext_xx_small", 256),
    "albert": text("AlbertModel", "AlbertConfig", hidden_size=768, num_attention_heads=12, intermediate_size=3072),
    "electra": text("ElectraModel", "ElectraConfig"),
    "gpt_neox": text("GPTNeoXModel", "GPTNeoXConfig", hidden_size=512, num_hidden_layers=4, num_attention_heads=8,
                     intermediate_size=2048, vocab_size=1000),
    "mobilebert": text("MobileBertModel", "MobileBertConfig"),
    "roformer": text("RoFormerModel", "RoFormerConfig", num_hidden_layers=4),
    "dinov2": pixels("Dinov2Model", "Dinov2Config", num_hidden_layers=4),
    "segformer": pixels("SegformerModel", "SegformerConfig"),
    "beit": pixels("BeitModel", "BeitConfig", num_hidden_layers=4, use_relative_position_bias=True),
    "conformer": conformer,
    "lstm": lstm,
}
MODELS = {**REPEATED, **OTHERS}


def use_statistics_of(torch, model, inputs):
    """Batch norms take the statistics of these inputs: with those that they begin with, the numbers of a deep network
    vanish, and its result in f16 is zero."""
    def take(norm, given):
        x = given[0]
        if x.numel() > x.shape[1]:
            axes = [i for i in range(x.dim()) if i != 1]
            norm.running_mean.copy_(x.mean(axes))
            norm.running_var.copy_(x.var(axes, unbiased=False))
    norms = [m for m in model.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    hooks = [m.register_forward_pre_hook(take) for m in norms if m.track_running_stats]
    if hooks:
        with torch.no_grad():
            model(*inputs)
    for hook in hooks:
        hook.remove()


def export(torch, name, folder):
    """The files' stem, or raises what PyTorch's exporter says."""
    import numpy as np
    torch.manual_seed(7)
    model, inputs = MODELS[name](torch)
    model = model.eval()
    use_statistics_of(torch, model, inputs)
    model = model.half().cuda()
    inputs = [x.cuda().half() if x.is_floating_point() else x.cuda() for x in inputs]
    with torch.no_grad():
        expected = model(*inputs)
        file = folder / f"{name}.onnx"
        try:
            torch.onnx.export(model, tuple(inputs), str(file), dynamo=False, opset_version=17)
        except Exception:
            torch.onnx.export(model, tuple(inputs), str(file), dynamo=True, external_data=False)
    for i, x in enumerate(inputs):
        np.save(folder / f"{name}_{i}.npy", x.cpu().numpy())
    expected = expected[0] if isinstance(expected, tuple) else expected
    np.save(folder / f"{name}_expected.npy", expected.float().cpu().numpy())


def main():
    if sys.argv[1:] == ["--list"]:
        print(json.dumps({"repeated": list(REPEATED), "others": list(OTHERS)}))
        return
    import torch
    warnings.simplefilter("ignore")
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or MODELS:
        line = {"model": name}
        try:
            export(torch, name, folder)
        except Exception as e:
            line["not_exported"] = repr(e)[-300:]
        print(json.dumps(line), flush=True)


main()
