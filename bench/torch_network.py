"""The score network and the classifier of configs/*.yaml in PyTorch, for comparison with ours.

NCSN++/DDPM++ (Song et al. 2021) with the options that our configurations use: residual blocks of type biggan, nearest
and average or FIR resampling, progressive_input none or residual, positional or Fourier embedding. Tensors have the
names of published checkpoints, all_modules.N.... Written to be fast in eager mode: 1x1 maps are convolutions, FIR
filters are depthwise ones, attention is PyTorch's own.

    python3 torch_network.py [GOLDEN]     checks it against the golden folders ($PSLD_GOLDEN or ../shared/golden)
"""

import math
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn

ACTIVATIONS = {"swish": F.silu, "relu": F.relu, "elu": F.elu, "lrelu": lambda x: F.leaky_relu(x, 0.2)}
DEFAULTS = {
    "name": "ncsnpp", "nonlinearity": "swish", "nf": 128, "ch_mult": [1], "num_res_blocks": 2, "attn_resolutions": [],
    "dropout": 0.0, "noise_cond": True, "fir": False, "fir_kernel": [1, 3, 3, 1], "skip_rescale": True,
    "resblock_type": "biggan", "progressive": "none", "progressive_input": "none", "progressive_combine": "sum",
    "embedding_type": "positional",
}
SUPPORTED = {
    "name": ("ncsnpp", "ncsnpp_clf"), "nonlinearity": tuple(ACTIVATIONS), "resblock_type": ("biggan",),
    "progressive": ("none",), "progressive_input": ("none", "residual"), "embedding_type": ("positional", "fourier"),
    "noise_cond": (True,),
}


def read_config(path):
    """The network's keys of a configuration, ours or a published one, with `image_size`."""
    import yaml

    with open(path, encoding="utf-8") as file:
        root = yaml.safe_load(file)
    root = root.get("diffusion", root.get("clf", root))
    model = root["model"]
    config = {**DEFAULTS, **model.get("score_fn", model.get("clf_fn", model))}
    config["image_size"] = root["data"].get("size", root["data"].get("image_size"))
    for key, values in SUPPORTED.items():
        if config[key] not in values:
            expected = ", ".join(map(str, values))
            raise SystemExit(f"{path}: {key}: {config[key]} is not one of what this comparison covers: {expected}")
    return config


def channels_of(tensors):
    """Channels in and out: those of the first convolution and of the last layer, by the module's number."""
    numbered = sorted(
        (int(name.split(".")[1]), tensor.shape)
        for name, tensor in tensors.items()
        if name.count(".") == 2 and name.endswith(".weight") and tensor.ndim >= 2
    )
    first = next(shape for _, shape in numbered if len(shape) == 4)
    return first[1], numbered[-1][1][0]


class Norm(nn.GroupNorm):
    def __init__(self, channels):
        super().__init__(min(channels // 4, 32), channels, eps=1e-6)


class NIN(nn.Module):
    """A matrix [in, out] for every pixel."""

    def __init__(self, channels):
        super().__init__()
        self.W = nn.Parameter(torch.empty(channels, channels))
        self.b = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return F.conv2d(x, self.W.t()[:, :, None, None], self.b)


class Fourier(nn.Module):
    def __init__(self, nf):
        super().__init__()
        self.register_buffer("W", torch.empty(nf))

    def forward(self, t):
        angle = t.log()[:, None] * self.W[None, :] * 2 * math.pi
        return torch.cat([angle.sin(), angle.cos()], 1)


def positional(t, nf):
    half = nf // 2
    frequency = torch.exp(torch.arange(half, dtype=torch.float32, device=t.device) * -(math.log(10000) / (half - 1)))
    angle = t[:, None] * frequency[None, :]
    return F.pad(torch.cat([angle.sin(), angle.cos()], 1), (0, nf % 2))


class Resample:
    """Twice or half the size: nearest and average, or a FIR filter with an even number of taps."""

    def __init__(self, config):
        self.taps = 0
        if config["fir"]:
            k = torch.tensor(config["fir_kernel"], dtype=torch.float32, device="cpu")
            self.taps = len(k)
            if self.taps % 2:
                raise SystemExit("fir_kernel: only an even number of taps is implemented here")
            k = torch.outer(k, k)
            self.kernel = (k / k.sum())[None, None]

    def weight(self, x, gain):
        return (self.kernel * gain).expand(x.shape[1], 1, self.taps, self.taps)

    def up(self, x):
        if not self.taps:
            return F.interpolate(x, scale_factor=2.0, mode="nearest")
        return F.conv_transpose2d(x, self.weight(x, 4), stride=2, padding=self.taps // 2 - 1, groups=x.shape[1])

    def down(self, x):
        if not self.taps:
            return F.avg_pool2d(x, 2)
        return self.filter(x, 2, self.taps // 2 - 1)

    def filter(self, x, stride, padding):
        return F.conv2d(x, self.weight(x, 1).flip(2, 3), stride=stride, padding=padding, groups=x.shape[1])


class Residual(nn.Module):
    """A biggan block; resize is None, "up" or "down"."""

    def __init__(self, config, channels_in, channels, resize, resample):
        super().__init__()
        self.act, self.dropout = ACTIVATIONS[config["nonlinearity"]], config["dropout"]
        self.scale = math.sqrt(0.5) if config["skip_rescale"] else 1.0
        self.resize = {"up": resample.up, "down": resample.down, None: None}[resize]
        self.GroupNorm_0 = Norm(channels_in)
        self.Conv_0 = nn.Conv2d(channels_in, channels, 3, padding=1)
        self.Dense_0 = nn.Linear(4 * config["nf"], channels)
        self.GroupNorm_1 = Norm(channels)
        self.Conv_1 = nn.Conv2d(channels, channels, 3, padding=1)
        if channels_in != channels or resize:
            self.Conv_2 = nn.Conv2d(channels_in, channels, 1)

    def forward(self, x, time):
        h = self.act(self.GroupNorm_0(x))
        if self.resize:
            h, x = self.resize(h), self.resize(x)
        h = self.Conv_0(h) + self.Dense_0(time)[:, :, None, None]
        h = F.dropout(self.act(self.GroupNorm_1(h)), self.dropout, self.training)
        h = self.Conv_1(h)
        if hasattr(self, "Conv_2"):
            x = self.Conv_2(x)
        return (x + h) * self.scale


class Attention(nn.Module):
    def __init__(self, config, channels):
        super().__init__()
        self.scale = math.sqrt(0.5) if config["skip_rescale"] else 1.0
        self.GroupNorm_0 = Norm(channels)
        self.NIN_0, self.NIN_1, self.NIN_2, self.NIN_3 = (NIN(channels) for _ in range(4))

    def forward(self, x):
        h = self.GroupNorm_0(x)
        # One head: [B, 1, pixels, channels].
        q, k, v = (nin(h).flatten(2).transpose(1, 2).unsqueeze(1) for nin in (self.NIN_0, self.NIN_1, self.NIN_2))
        h = F.scaled_dot_product_attention(q, k, v).squeeze(1).transpose(1, 2).reshape(x.shape)
        return (x + self.NIN_3(h)) * self.scale


class InputDown(nn.Module):
    """The pyramid of inputs, one level down: filter and convolution of stride 2."""

    def __init__(self, config, channels_in, channels, resample):
        super().__init__()
        self.filter = resample.filter if config["fir"] else None
        self.margin = len(config["fir_kernel"]) // 2
        conv = nn.Conv2d(channels_in, channels, 3, stride=2)
        self.add_module("Conv2d_0" if config["fir"] else "Conv_0", conv)

    def forward(self, x):
        if self.filter:
            return self.Conv2d_0(self.filter(x, 1, self.margin))
        return self.Conv_0(F.pad(x, (0, 1, 0, 1)))


class Network(nn.Module):
    """z [B, in, H, W], t [B] -> eps [B, out, H, W], or logits [B, out] of a classifier."""

    def __init__(self, config, channels_in, channels_out):
        super().__init__()
        self.all_modules = nn.ModuleList()
        self.resample = Resample(config)
        self.nf, self.act = config["nf"], ACTIVATIONS[config["nonlinearity"]]
        self.scale = math.sqrt(0.5) if config["skip_rescale"] else 1.0
        self.fourier = [self.add(Fourier(self.nf))] if config["embedding_type"] == "fourier" else []
        embedding = self.nf * (2 if self.fourier else 1)
        self.time = [self.add(nn.Linear(embedding, 4 * self.nf)), self.add(nn.Linear(4 * self.nf, 4 * self.nf))]
        self.head = [self.add(nn.Conv2d(channels_in, self.nf, 3, padding=1))]
        self.add_encoder(config, channels_in)
        if config["name"] == "ncsnpp_clf":
            size = config["image_size"] >> len(config["ch_mult"]) - 1
            self.decoder = None
            self.last = [self.add(nn.Linear(self.width * size * size, channels_out, bias=False))]
        else:
            self.add_decoder(config)
            self.last = [self.add(Norm(self.width)), self.add(nn.Conv2d(self.width, channels_out, 3, padding=1))]

    def add(self, module):
        """Appends it to the numbered modules. The lists that forward() walks are plain, so names stay as they are."""
        self.all_modules.append(module)
        return module

    def block(self, config, channels, resize=None, skip=0):
        made = self.add(Residual(config, self.width + skip, channels, resize, self.resample))
        self.width = channels
        return made

    def attention(self, config, size):
        return self.add(Attention(config, self.width)) if size in config["attn_resolutions"] else None

    def add_encoder(self, config, channels_in):
        """self.encoder: (block, attention or None, pyramid or None), each of which leaves its result behind."""
        self.width, size, self.encoder, self.skips = self.nf, config["image_size"], [], [self.nf]
        pyramid_width = channels_in
        for level, mult in enumerate(config["ch_mult"]):
            for _ in range(config["num_res_blocks"]):
                self.encoder.append((self.block(config, self.nf * mult), self.attention(config, size), None))
                self.skips.append(self.width)
            if level == len(config["ch_mult"]) - 1:
                break
            down, pyramid = self.block(config, self.width, "down"), None
            if config["progressive_input"] == "residual":
                pyramid = self.add(InputDown(config, pyramid_width, self.width, self.resample))
                pyramid_width = self.width
            self.encoder.append((down, None, pyramid))
            self.skips.append(self.width)
            size //= 2
        middle = self.block(config, self.width), self.add(Attention(config, self.width))
        self.middle = (*middle, self.block(config, self.width))

    def add_decoder(self, config):
        """self.decoder: (block, attention or None, whether it takes what the encoder left)."""
        self.decoder, size = [], config["image_size"] >> len(config["ch_mult"]) - 1
        for level in reversed(range(len(config["ch_mult"]))):
            channels = self.nf * config["ch_mult"][level]
            for _ in range(config["num_res_blocks"]):
                self.decoder.append((self.block(config, channels, skip=self.skips.pop()), None, True))
            block = self.block(config, channels, skip=self.skips.pop())
            self.decoder.append((block, self.attention(config, size), True))
            if level > 0:
                self.decoder.append((self.block(config, channels, "up"), None, False))
                size *= 2

    def forward(self, z, t):
        time = self.fourier[0](t) if self.fourier else positional(t, self.nf)
        for dense in self.time:
            time = self.act(dense(time))
        pyramid, h = z, self.head[0](z)
        left = [h]
        for block, attention, down in self.encoder:
            h = block(h, time)
            if attention:
                h = attention(h)
            if down:
                h = pyramid = (down(pyramid) + h) * self.scale
            left.append(h)
        first, attention, second = self.middle
        h = second(attention(first(h, time)), time)
        if self.decoder is None:
            return self.last[0](h.flatten(1))
        for block, attention, takes in self.decoder:
            h = block(torch.cat([h, left.pop()], 1) if takes else h, time)
            if attention:
                h = attention(h)
        norm, conv = self.last
        return conv(self.act(norm(h)))


def load(config_path, weights_path):
    """The network of a configuration with the weights of a safetensors file, for evaluation, and its channels in."""
    from safetensors.torch import load_file

    tensors = load_file(weights_path)
    channels_in, channels_out = channels_of(tensors)
    with torch.device("meta"):
        network = Network(read_config(config_path), channels_in, channels_out)
    network.load_state_dict(tensors, strict=True, assign=True)
    return network.eval(), channels_in


def check(folder, output):
    """Compares with a golden folder; the largest error relative to the largest value."""
    import numpy

    network, _ = load(os.path.join(folder, "config.yaml"), os.path.join(folder, "model.safetensors"))
    z, t, expected = (torch.from_numpy(numpy.load(os.path.join(folder, name + ".npy"))) for name in ("z", "t", output))
    with torch.no_grad():
        error = (network(z, t) - expected).abs().max() / expected.abs().max()
    return error.item()


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    golden = os.environ.get("PSLD_GOLDEN", os.path.join(here, "..", "..", "shared", "golden"))
    golden = sys.argv[1] if len(sys.argv) > 1 else golden
    failed = 0
    outputs = {"tiny-ddpmpp": "eps", "tiny-ncsnpp": "eps", "tiny-cld": "eps", "tiny-clf": "logits"}
    for name, output in outputs.items():
        folder = os.path.join(golden, name)
        if not os.path.isdir(folder):
            print(f"{name}: skipped, no such folder")
            continue
        error = check(folder, output)
        failed += not error <= 2e-5
        print(f"{name}: error {error:.1e} of the largest value, allowed 2e-5: {'ok' if error <= 2e-5 else 'WRONG'}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
