"""Architectures of the package transformers with random weights, at reduced sizes."""

import torch
import transformers as tr

from case import Case

TEXT = {"input_ids": {0: "batch", 1: "length"}, "attention_mask": {0: "batch", 1: "length"}}
SMALL = dict(vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
             max_position_embeddings=32)
ALL = {**SMALL, "num_key_value_heads": 1, "head_dim": 8}


def texts(n, t):
    mask = torch.ones(n, t, dtype=torch.int64)
    mask[:1, t // 2 + 1:] = 0
    return {"input_ids": torch.randint(3, 40, (n, t)), "attention_mask": mask}


def full_texts(n, t):
    return {"input_ids": torch.randint(3, 40, (n, t)), "attention_mask": torch.ones(n, t, dtype=torch.int64)}


def images(channels, side):
    return lambda n: {"pixel_values": torch.randn(n, channels, side, side)}


def text_case(name, config, model, inputs=texts, sizes=((2, 7), (1, 1), (3, 12), (0, 4)), **options):
    return Case(name, lambda: model(config(**options)), inputs, list(sizes), TEXT, True)


def decoder(name, config, model, **options):
    return text_case(name, config, model, full_texts, use_cache=False, pad_token_id=0, **options)


class Cached(torch.nn.Module):
    """A decoder with its cache as tensors, which is empty at first."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, keys0, values0, keys1, values1):
        cache = tr.DynamicCache([(keys0, values0), (keys1, values1)])
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True)
        parts = [out.logits]
        for layer in out.past_key_values.layers:
            parts += [layer.keys, layer.values]
        return tuple(parts)


def cached_inputs(n, t, past, heads=1, width=8):
    out = {"input_ids": torch.randint(3, 40, (n, t)), "attention_mask": torch.ones(n, past + t, dtype=torch.int64)}
    for layer in (0, 1):
        for kind in ("keys", "values"):
            out[f"{kind}{layer}"] = torch.randn(n, heads, past, width)
    return out


def cached(name, config, model, heads=1, **options):
    axes = {"input_ids": {0: "batch", 1: "length"}, "attention_mask": {0: "batch", 1: "total"}}
    for layer in (0, 1):
        for kind in ("keys", "values"):
            axes[f"{kind}{layer}"] = {0: "batch", 2: "past"}
    return Case(name, lambda: Cached(model(config(**options))), lambda *s: cached_inputs(*s, heads=heads),
                [(2, 2, 5), (2, 1, 6), (1, 4, 0), (0, 1, 3)], axes, True)


def seq2seq_inputs(n, t, s):
    return {"input_ids": torch.randint(3, 40, (n, t)), "decoder_input_ids": torch.randint(3, 40, (n, s))}


def seq2seq(name, config, model, **options):
    return Case(name, lambda: model(config(use_cache=False, **options)), seq2seq_inputs, [(2, 7, 4), (1, 3, 2), (1, 1, 1), (0, 2, 3)],
                {"input_ids": {0: "batch", 1: "t"}, "decoder_input_ids": {0: "batch", 1: "s"}}, True)


def lively(model, gain):
    """With larger weights: a deep stack of the package's small ones gives next to nothing."""
    for part in model.modules():
        if isinstance(part, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(part.weight)
            part.weight.data *= gain
    return model


def vision(name, config, model, channels=3, side=32, gain=1, **options):
    return Case(name, lambda: lively(model(config(**options)), gain), images(channels, side), [(2,), (1,), (0,)],
                {"pixel_values": {0: "batch"}}, True)


def audio(n, t):
    return {"input_values": torch.randn(n, t)}


def more_cases(bert, v):
    return [
        text_case("xlm_roberta", tr.XLMRobertaConfig, tr.XLMRobertaForQuestionAnswering,
                  **{**bert, "max_position_embeddings": 40}),
        text_case("camembert", tr.CamembertConfig, tr.CamembertForTokenClassification,
                  **{**bert, "max_position_embeddings": 40}),
        text_case("squeezebert", tr.SqueezeBertConfig, tr.SqueezeBertModel, **bert, embedding_size=16),
        text_case("convbert", tr.ConvBertConfig, tr.ConvBertModel, **bert, embedding_size=16),
        text_case("mobilebert", tr.MobileBertConfig, tr.MobileBertModel, **bert, embedding_size=16,
                  intra_bottleneck_size=16),
        text_case("clip_text", tr.CLIPTextConfig, tr.CLIPTextModel, **bert),
        text_case("fnet", tr.FNetConfig, tr.FNetModel, lambda n, t: {"input_ids": texts(n, t)["input_ids"]}, **bert),
        decoder("stablelm", tr.StableLmConfig, tr.StableLmForCausalLM, **SMALL, num_key_value_heads=2),
        decoder("olmo2", tr.Olmo2Config, tr.Olmo2ForCausalLM, **SMALL, num_key_value_heads=2),
        decoder("cohere", tr.CohereConfig, tr.CohereForCausalLM, **SMALL, num_key_value_heads=2),
        decoder("granite", tr.GraniteConfig, tr.GraniteForCausalLM, **SMALL, num_key_value_heads=2),
        decoder("starcoder2", tr.Starcoder2Config, tr.Starcoder2ForCausalLM, **SMALL, num_key_value_heads=1),
        decoder("mamba", tr.MambaConfig, tr.MambaForCausalLM, vocab_size=40, hidden_size=16, num_hidden_layers=1,
                state_size=4),
        cached("qwen3_cache", tr.Qwen3Config, tr.Qwen3ForCausalLM, pad_token_id=0, **ALL),
        cached("gemma_cache", tr.GemmaConfig, tr.GemmaForCausalLM, pad_token_id=0, **ALL),
        cached("opt_cache", tr.OPTConfig, tr.OPTForCausalLM, heads=2, vocab_size=40, hidden_size=16,
               num_hidden_layers=2, num_attention_heads=2, ffn_dim=32, max_position_embeddings=32,
               word_embed_proj_dim=16),
        vision("siglip_vision", tr.SiglipVisionConfig, tr.SiglipVisionModel, **v),
        vision("poolformer", tr.PoolFormerConfig, tr.PoolFormerModel, hidden_sizes=[8, 12, 16, 20], depths=[1, 1, 1, 1],
               num_encoder_blocks=4),
        vision("regnet", tr.RegNetConfig, tr.RegNetModel, embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1],
               groups_width=4),
        vision("mobilenet_v1", tr.MobileNetV1Config, tr.MobileNetV1Model, depth_multiplier=0.25, min_depth=4, side=64),
        vision("efficientnet", tr.EfficientNetConfig, tr.EfficientNetModel, width_coefficient=0.25,
               depth_coefficient=0.3, image_size=64, hidden_dim=320, side=64, gain=3),
        vision("depth_anything", tr.DepthAnythingConfig, tr.DepthAnythingForDepthEstimation, side=28,
               backbone_config=tr.Dinov2Config(hidden_size=16, num_hidden_layers=4, num_attention_heads=2, image_size=28,
                                               patch_size=14, out_features=["stage1", "stage2", "stage3", "stage4"],
                                               reshape_hidden_states=False, apply_layernorm=True),
               patch_size=14, reassemble_hidden_size=16, neck_hidden_sizes=[8, 8, 8, 8], fusion_hidden_size=8),
        vision("yolos", tr.YolosConfig, tr.YolosForObjectDetection, **{**v, "image_size": [32, 32]},
               num_detection_tokens=4),
        Case("hubert", lambda: tr.HubertModel(tr.HubertConfig(
            **{**SMALL, "num_hidden_layers": 1}, conv_dim=(8, 8), conv_stride=(5, 2), conv_kernel=(10, 3),
            num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2)), audio, [(2, 400), (1, 333), (0, 200)],
            {"input_values": {0: "batch", 1: "samples"}}, True),
    ]


def cases():
    bert = {**SMALL}
    v = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=32,
             patch_size=8)
    bart = dict(vocab_size=40, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
                decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=32)
    return [
        text_case("bert", tr.BertConfig, tr.BertModel, **bert),
        text_case("roberta", tr.RobertaConfig, tr.RobertaForMaskedLM, **{**bert, "max_position_embeddings": 40}),
        text_case("distilbert", tr.DistilBertConfig, tr.DistilBertForSequenceClassification, vocab_size=40, dim=16,
                  n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=32),
        text_case("albert", tr.AlbertConfig, tr.AlbertModel, **bert, embedding_size=8),
        text_case("electra", tr.ElectraConfig, tr.ElectraForTokenClassification, **bert, embedding_size=8),
        text_case("mpnet", tr.MPNetConfig, tr.MPNetModel, **bert),
        text_case("deberta", tr.DebertaV2Config, tr.DebertaV2Model, **bert, relative_attention=True,
                  pos_att_type=["p2c", "c2p"], position_buckets=8),
        text_case("modernbert", tr.ModernBertConfig, tr.ModernBertModel, **bert, pad_token_id=0, bos_token_id=1,
                  eos_token_id=2, cls_token_id=1, sep_token_id=2),
        text_case("t5_encoder", tr.T5Config, tr.T5EncoderModel, vocab_size=40, d_model=16, d_kv=8, d_ff=32,
                  num_layers=2, num_heads=2),
        decoder("gpt2", tr.GPT2Config, tr.GPT2LMHeadModel, vocab_size=40, n_embd=16, n_layer=2, n_head=2,
                n_positions=32),
        decoder("gpt_neox", tr.GPTNeoXConfig, tr.GPTNeoXForCausalLM, **SMALL),
        decoder("opt", tr.OPTConfig, tr.OPTForCausalLM, vocab_size=40, hidden_size=16, num_hidden_layers=2,
                num_attention_heads=2, ffn_dim=32, max_position_embeddings=32, word_embed_proj_dim=16),
        decoder("bloom", tr.BloomConfig, tr.BloomForCausalLM, vocab_size=40, hidden_size=16, n_layer=2, n_head=2),
        decoder("llama", tr.LlamaConfig, tr.LlamaForCausalLM, **ALL),
        decoder("mistral", tr.MistralConfig, tr.MistralForCausalLM, **ALL, sliding_window=4),
        decoder("qwen2", tr.Qwen2Config, tr.Qwen2ForCausalLM, **SMALL, num_key_value_heads=1),
        decoder("qwen3", tr.Qwen3Config, tr.Qwen3ForCausalLM, **ALL),
        decoder("phi", tr.PhiConfig, tr.PhiForCausalLM, **SMALL),
        decoder("gemma", tr.GemmaConfig, tr.GemmaForCausalLM, **ALL),
        decoder("gemma2", tr.Gemma2Config, tr.Gemma2ForCausalLM, **ALL, sliding_window=4),
        decoder("falcon", tr.FalconConfig, tr.FalconForCausalLM, vocab_size=40, hidden_size=16, num_hidden_layers=2,
                num_attention_heads=2),
        decoder("mixtral", tr.MixtralConfig, tr.MixtralForCausalLM, **ALL, num_local_experts=2),
        cached("llama_cache", tr.LlamaConfig, tr.LlamaForCausalLM, pad_token_id=0, **ALL),
        cached("gpt2_cache", tr.GPT2Config, tr.GPT2LMHeadModel, heads=2, vocab_size=40, n_embd=16, n_layer=2, n_head=2,
               n_positions=32),
        seq2seq("bart", tr.BartConfig, tr.BartForConditionalGeneration, **bart),
        seq2seq("t5", tr.T5Config, tr.T5ForConditionalGeneration, vocab_size=40, d_model=16, d_kv=8, d_ff=32,
                num_layers=1, num_heads=2),
        seq2seq("marian", tr.MarianConfig, tr.MarianMTModel, **bart, pad_token_id=0, decoder_start_token_id=1),
        vision("vit", tr.ViTConfig, tr.ViTForImageClassification, **v),
        # Quantized, it has numbers on the edge of a step, which rounding moves.
        Case("vit_edges", lambda: tr.ViTForImageClassification(tr.ViTConfig(
            hidden_size=24, num_hidden_layers=3, num_attention_heads=3, intermediate_size=96, image_size=48,
            patch_size=8)), images(3, 48), [(2,), (1,), (0,)], {"pixel_values": {0: "batch"}}, True, seed=5),
        vision("deit", tr.DeiTConfig, tr.DeiTModel, **v),
        vision("beit", tr.BeitConfig, tr.BeitModel, **v, use_relative_position_bias=True),
        vision("dinov2", tr.Dinov2Config, tr.Dinov2Model, **{k: x for k, x in v.items() if k != "intermediate_size"}),
        vision("clip_vision", tr.CLIPVisionConfig, tr.CLIPVisionModel, **v),
        vision("swin", tr.SwinConfig, tr.SwinModel, image_size=32, patch_size=2, embed_dim=8, depths=[1, 2],
               num_heads=[1, 2], window_size=4),
        vision("convnext", tr.ConvNextConfig, tr.ConvNextForImageClassification, hidden_sizes=[8, 12, 16, 20],
               depths=[1, 1, 1, 1]),
        vision("resnet", tr.ResNetConfig, tr.ResNetForImageClassification, embedding_size=8, hidden_sizes=[8, 12],
               depths=[1, 1]),
        vision("mobilenet_v2", tr.MobileNetV2Config, tr.MobileNetV2Model, depth_multiplier=0.35, side=64),
        vision("mobilevit", tr.MobileViTConfig, tr.MobileViTModel, image_size=64, side=64, hidden_sizes=[16, 20, 24],
               neck_hidden_sizes=[8, 8, 8, 8, 8, 8, 16], num_attention_heads=2),
        vision("segformer", tr.SegformerConfig, tr.SegformerForSemanticSegmentation, hidden_sizes=[8, 8, 16, 16],
               depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 2, 2], decoder_hidden_size=8),
        Case("wav2vec2", lambda: tr.Wav2Vec2Model(tr.Wav2Vec2Config(
            **{**SMALL, "num_hidden_layers": 1}, conv_dim=(8, 8), conv_stride=(5, 2), conv_kernel=(10, 3),
            num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2)), audio, [(2, 400), (1, 333), (0, 200)],
            {"input_values": {0: "batch", 1: "samples"}}, True),
        *more_cases(bert, v),
        Case("whisper_encoder", lambda: tr.WhisperModel(tr.WhisperConfig(
            vocab_size=40, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, num_mel_bins=8, max_source_positions=20,
            pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)).get_encoder(),
            lambda n: {"input_features": torch.randn(n, 8, 40)}, [(2,), (1,)], {"input_features": {0: "batch"}}, True),
    ]
