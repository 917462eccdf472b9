#!/usr/bin/env python3
"""make-foreign.py OUT [--large]: tiny networks of other projects with random weights, and what they say.

EDM: written here from the papers' formulas (Karras et al. 2022, Nichol & Dhariwal 2021), with PyTorch for convolutions.
The pickles have the form of that project's files. Their `module_src` would leave a file named `executed` behind.
diffusers: by that package. Needs torch, numpy, and for the second diffusers.
"""
import json, math, os, pickle, shutil, sys, types
import numpy as np
import torch
import torch.nn.functional as F

LARGE = "--large" in sys.argv
SOURCE = "open('executed', 'w').close()\n"


# ---- EDM's networks -------------------------------------------------------------------------------------------------

def groups(c):
    return min(32, c // 4)


class Net:
    """Weights by name, made when first asked for; calls record what a module is."""

    def __init__(self, **kw):
        self.kw, self.w, self.made = kw, {}, torch.Generator().manual_seed(kw.pop("seed"))

    def weight(self, name, *shape, around=0.0, scale=None):
        if name not in self.w:
            fan = np.prod(shape[1:]) if len(shape) > 1 else 4
            scale = 1 / math.sqrt(fan) if scale is None else scale
            self.w[name] = around + scale * torch.randn(*shape, generator=self.made)
        return self.w[name]

    def linear(self, name, x, out, bias=True):
        y = x @ self.weight(name + ".weight", out, x.shape[1]).T
        return y + self.weight(name + ".bias", out, scale=0.2) if bias else y

    def norm(self, name, x, eps):
        c = x.shape[1]
        w, b = self.weight(name + ".weight", c, around=1, scale=0.1), self.weight(name + ".bias", c, scale=0.1)
        return F.group_norm(x, groups(c), w, b, eps)

    def resample(self, name, x, up, down):
        f = torch.tensor(self.kw.get("resample_filter", [1, 1]), dtype=torch.float32)
        f = torch.outer(f, f) / f.sum() ** 2
        self.w[name + ".resample_filter"] = f[None, None]
        c, pad = x.shape[1], (f.shape[0] - 1) // 2
        if up:
            return F.conv_transpose2d(x, 4 * f.expand(c, 1, *f.shape), groups=c, stride=2, padding=pad)
        return F.conv2d(x, f.expand(c, 1, *f.shape), groups=c, stride=2, padding=pad)

    def conv(self, name, x, out, kernel, up=False, down=False):
        if up or down:
            x = self.resample(name, x, up, down)
        if kernel == 0:
            return x
        w, b = self.weight(name + ".weight", out, x.shape[1], kernel, kernel), self.weight(name + ".bias", out, scale=0.1)
        return F.conv2d(x, w, b, padding=kernel // 2)

    def conv_then_filter(self, name, x, out):
        """A 3x3 convolution on a wide border, then the filter, keeping every second pixel."""
        f = torch.tensor(self.kw.get("resample_filter", [1, 1]), dtype=torch.float32)
        f = torch.outer(f, f) / f.sum() ** 2
        self.w[name + ".resample_filter"] = f[None, None]
        w = self.weight(name + ".weight", out, x.shape[1], 3, 3)
        x = F.conv2d(x, w, padding=1 + (f.shape[0] - 1) // 2)
        x = F.conv2d(x, f.expand(out, 1, *f.shape), groups=out, stride=2)
        return x + self.weight(name + ".bias", out, scale=0.1)[None, :, None, None]

    def block(self, name, x, emb, out, up=False, down=False, heads=0):
        song, eps = self.song, 1e-6 if self.song else 1e-5
        h = self.conv(name + ".conv0", F.silu(self.norm(name + ".norm0", x, eps)), out, 3, up, down)
        p = self.linear(name + ".affine", emb, out if song else 2 * out)[:, :, None, None]
        if song:
            h = F.silu(self.norm(name + ".norm1", h + p, eps))
        else:
            h = F.silu(self.norm(name + ".norm1", h, eps) * (1 + p[:, :out]) + p[:, out:])
        h = self.conv(name + ".conv1", h, out, 3)
        if x.shape[1] != out or up or down:
            kernel = 1 if song or x.shape[1] != out else 0
            x = self.conv(name + ".skip", x, out, kernel, up, down)
        by = math.sqrt(0.5) if song else 1
        x = (x + h) * by
        if heads:
            n, c, hh, ww = x.shape
            qkv = self.conv(name + ".qkv", self.norm(name + ".norm2", x, eps), 3 * c, 1)
            q, k, v = qkv.reshape(n * heads, c // heads, 3, hh * ww).unbind(2)
            p = torch.softmax(torch.einsum("ncq,nck->nqk", q, k / math.sqrt(c // heads)), dim=2)
            a = torch.einsum("nqk,nck->ncq", p, v).reshape(n, c, hh, ww)
            x = (x + self.conv(name + ".proj", a, c, 1)) * by
        return x

    def embed(self, t, label):
        kw, song = self.kw, self.song
        width = kw["model_channels"] * kw.get("channel_mult_noise", 1)
        half = width // 2
        if song and kw.get("embedding_type") == "fourier":
            a = torch.outer(t, 2 * math.pi * self.weight("map_noise.freqs", half, scale=16))
        else:
            a = torch.outer(t, (1 / 10000) ** (torch.arange(half) / (half - (1 if song else 0))))
        e = torch.cat([a.sin(), a.cos()] if song else [a.cos(), a.sin()], dim=1)
        labels, wide = kw.get("label_dim", 0), kw["model_channels"] * kw.get("channel_mult_emb", 4)
        if labels and song:
            e = e + self.linear("map_label", label * math.sqrt(labels), width)
        if kw.get("augment_dim"):
            self.weight("map_augment.weight", width, kw["augment_dim"])
        e = self.linear("map_layer1", F.silu(self.linear("map_layer0", e, wide)), wide)
        if labels and not song:
            e = e + self.linear("map_label", label, wide, bias=False)
        return F.silu(e)

    def __call__(self, x, t, label):
        kw, song = self.kw, self.song
        size, base, mult, blocks = kw["img_resolution"], kw["model_channels"], kw["channel_mult"], kw["num_blocks"]
        emb, skips, aux, encoder = self.embed(t, label), [], x, kw.get("encoder_type", "standard")

        def heads(r, last=True):
            attends = r in kw["attn_resolutions"] and (last or not song)
            return 0 if not attends else 1 if song else lambda c: c // 64

        def run(name, x, c, **how):
            h = how.pop("heads", 0)
            return self.block(name, x, emb, c, heads=h(c) if callable(h) else h, **how)

        for level, m in enumerate(mult):
            r = size >> level
            if level == 0:
                x = self.conv(f"enc.{r}x{r}_conv", x, base if song else base * m, 3)
            else:
                x = run(f"enc.{r}x{r}_down", x, x.shape[1], down=True)
                if encoder == "skip":
                    aux = self.conv(f"enc.{r}x{r}_aux_down", aux, 0, 0, down=True)
                    x = x + self.conv(f"enc.{r}x{r}_aux_skip", aux, x.shape[1], 1)
                if encoder == "residual":
                    x = aux = (x + self.conv_then_filter(f"enc.{r}x{r}_aux_residual", aux, x.shape[1])) / math.sqrt(2)
            skips.append(x)
            for i in range(blocks):
                x = run(f"enc.{r}x{r}_block{i}", x, base * m, heads=heads(r))
                skips.append(x)
        out = None
        for level in reversed(range(len(mult))):
            r, c = size >> level, base * mult[level]
            if level == len(mult) - 1:
                x = run(f"dec.{r}x{r}_in0", x, x.shape[1], heads=1 if song else lambda c: c // 64)
                x = run(f"dec.{r}x{r}_in1", x, x.shape[1])
            else:
                x = run(f"dec.{r}x{r}_up", x, x.shape[1], up=True)
            for i in range(blocks + 1):
                x = run(f"dec.{r}x{r}_block{i}", torch.cat([x, skips.pop()], 1), c, heads=heads(r, i == blocks))
            if song and (kw.get("decoder_type") == "skip" or level == 0):
                if out is not None:
                    out = self.conv(f"dec.{r}x{r}_aux_up", out, 0, 0, up=True)
                h = F.silu(self.norm(f"dec.{r}x{r}_aux_norm", x, 1e-6))
                h = self.conv(f"dec.{r}x{r}_aux_conv", h, kw["out_channels"], 3)
                out = h if out is None else out + h
        if song:
            return out
        return self.conv("out_conv", F.silu(self.norm("out_norm", x, 1e-5)), kw["out_channels"], 3)


class Song(Net):
    song, class_name = True, "SongUNet"


class Adm(Net):
    song, class_name = False, "DhariwalUNet"


# ---- Preconditioning ------------------------------------------------------------------------------------------------

def iddpm_table(m=1000, c1=0.001, c2=0.008):
    left = lambda j: math.sin(0.5 * math.pi * j / m / (c2 + 1)) ** 2
    u = [0.0] * (m + 1)
    for j in range(m, 0, -1):
        u[j - 1] = math.sqrt((u[j] ** 2 + 1) / max(left(j - 1) / left(j), c1) - 1)
    return torch.tensor(u)


def denoise(kind, net, x, sigma, label, data=0.5):
    s = sigma[:, None, None, None]
    if kind == "EDMPrecond":
        w = (s ** 2 + data ** 2).sqrt()
        return data ** 2 / w ** 2 * x + s * data / w * net(x / w, sigma.log() / 4, label)
    if kind == "VEPrecond":
        return x + s * net(x, (0.5 * sigma).log(), label)
    if kind == "VPPrecond":
        d, least = 19.9, 0.1
        t = 999 * (((least ** 2 + 2 * d * (1 + sigma ** 2).log()).sqrt() - least) / d)
    else:
        u = iddpm_table()
        t = 999.0 - (sigma[:, None] - u[None]).abs().argmin(1)
    return x - s * net(x / (1 + s ** 2).sqrt(), t.float(), label)[:, : x.shape[1]]


# ---- Pickles --------------------------------------------------------------------------------------------------------

def fake_module(name, **content):
    module = types.ModuleType(name)
    for key, value in content.items():
        value.__module__, value.__qualname__ = name, key
        setattr(module, key, value)
    sys.modules[name] = module
    return module


def _reconstruct_persistent_obj(meta):
    raise RuntimeError("not here")


class EasyDict(dict):
    pass


fake_module("torch_utils")
fake_module("torch_utils.persistence", _reconstruct_persistent_obj=_reconstruct_persistent_obj)
fake_module("dnnlib")
fake_module("dnnlib.util", EasyDict=EasyDict)


class Persistent:
    def __init__(self, class_name, **init):
        self.class_name, self.init, self.tensors, self.modules = class_name, init, {}, {}

    def __reduce__(self):
        buffers = {k: v for k, v in self.tensors.items() if k in ("resample_filter", "freqs", "u")}
        parameters = {k: torch.nn.Parameter(v) for k, v in self.tensors.items() if k not in buffers}
        state = dict(training=False, _parameters=parameters, _buffers=buffers, _modules=self.modules,
                     _init_args=(), _init_kwargs=EasyDict(self.init))
        about = dict(type="class", version=6, module_src=SOURCE, class_name=self.class_name, state=state)
        return _reconstruct_persistent_obj, (about,)


def tree(net, class_name, init):
    root = Persistent(class_name, **init)
    for name, value in net.w.items():
        parts, at = name.split("."), root
        for part in parts[:-1]:
            if part in ("enc", "dec"):
                box = at.modules.setdefault(part, torch.nn.ModuleDict())
                at = types.SimpleNamespace(modules=box._modules, tensors={})
            else:
                at = at.modules.setdefault(part, Persistent("Module"))
        at.tensors[parts[-1]] = value.contiguous()
    return root


def save_edm(out, name, kind, cls, seed, **kw):
    folder = f"{out}/edm-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    kw = dict(dict(in_channels=3, out_channels=3, label_dim=0), **kw)
    net, n = cls(seed=seed, **kw), 4
    draw = torch.Generator().manual_seed(seed)
    sigma = torch.tensor([0.02, 0.5, 3.0, 60.0])
    size, labels = kw["img_resolution"], kw["label_dim"]
    x = 0.5 * torch.randn(n, kw["in_channels"], size, size, generator=draw) * (1 + sigma[:, None, None, None])
    label = torch.eye(labels)[torch.arange(n) % labels] if labels else None
    with torch.no_grad():
        denoise(kind, net, x, sigma, label)  # makes the weights
        np.save(folder + "/denoised.npy", denoise(kind, net, x, sigma, label).numpy())
        if labels:
            np.save(folder + "/label.npy", (np.arange(n) % labels).astype(np.int64))
            np.save(folder + "/denoised_unconditional.npy", denoise(kind, net, x, sigma, 0 * label).numpy())
    np.save(folder + "/x.npy", x.numpy())
    np.save(folder + "/sigma.npy", sigma.numpy())
    outer = Persistent(kind, img_resolution=size, img_channels=kw["in_channels"], label_dim=labels, model_type=cls.class_name)
    if kind == "iDDPMPrecond":
        outer.tensors["u"] = iddpm_table()
    outer.modules["model"] = tree(net, cls.class_name, kw)
    with open(folder + "/network.pkl", "wb") as file:
        pickle.dump(dict(ema=outer, dataset_kwargs=EasyDict(path="x.zip"), loss_fn=None), file)


def make_edm(out):
    tiny = dict(img_resolution=8, model_channels=4, channel_mult=[1, 2], num_blocks=1, attn_resolutions=[4])
    save_edm(out, "vp", "VPPrecond", Song, 1, **tiny, resample_filter=[1, 1])
    save_edm(out, "ve", "VEPrecond", Song, 2, **tiny, embedding_type="fourier", encoder_type="residual",
             channel_mult_noise=2, resample_filter=[1, 3, 3, 1])
    save_edm(out, "skip", "EDMPrecond", Song, 3, **tiny, encoder_type="skip", decoder_type="skip", label_dim=3,
             resample_filter=[1, 3, 3, 1], augment_dim=9)
    save_edm(out, "adm", "EDMPrecond", Adm, 4, **tiny, label_dim=5, augment_dim=9)
    save_edm(out, "iddpm", "iDDPMPrecond", Adm, 5, **dict(tiny, out_channels=2, in_channels=1))
    if LARGE:  # heads of 64 channels
        save_edm(out, "adm-heads", "EDMPrecond", Adm, 4, **dict(tiny, model_channels=64))


# ---- diffusers ------------------------------------------------------------------------------------------------------

BASE = dict(sample_size=8, in_channels=1, out_channels=1, block_out_channels=(4, 8), layers_per_block=1,
            down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
            norm_num_groups=2)
NETWORKS = {
    "heads": dict(),
    "scale-shift": dict(resnet_time_scale_shift="scale_shift", attention_head_dim=2),
    "classes": dict(num_class_embeds=5, mid_block_scale_factor=1.4142),
    "timestep-class": dict(class_embed_type="timestep", attention_head_dim=None),
    "centred": dict(center_input_sample=True, act_fn="relu", add_attention=False, downsample_padding=0, freq_shift=1,
                    flip_sin_to_cos=False),
    "blocks": dict(downsample_type="resnet", upsample_type="resnet", block_out_channels=(4, 6, 6), attention_head_dim=4,
                   down_block_types=("AttnDownBlock2D", "ResnetDownsampleBlock2D", "DownBlock2D"),
                   up_block_types=("AttnUpBlock2D", "ResnetUpsampleBlock2D", "UpBlock2D"), time_embedding_dim=20),
}
SCHEDULERS = {
    "classes": dict(prediction_type="v_prediction", beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012),
    "centred": dict(prediction_type="sample"),
    "scale-shift": dict(beta_schedule="squaredcos_cap_v2", num_train_timesteps=500),
    "blocks": dict(trained_betas=[round(x, 6) for x in np.linspace(1e-3, 0.1, 60).tolist()], num_train_timesteps=60),
}
LEFT_OUT = ("attention_head_dim", "flip_sin_to_cos", "freq_shift", "act_fn", "add_attention", "downsample_padding", "norm_eps")


def walk(model, scheduler, z, times, label):
    """Deterministic DDIM in double, the network in float."""
    left, kind = scheduler.alphas_cumprod.double(), scheduler.config.prediction_type
    for a, b in zip(times[:-1], times[1:]):
        with torch.no_grad():
            f = model(z.float(), torch.full((z.shape[0],), int(a)), class_labels=label).sample.double()
        signal, noise = left[a].sqrt(), (1 - left[a]).sqrt()
        clean = (z - noise * f) / signal if kind == "epsilon" else f if kind == "sample" else signal * z - noise * f
        eps = f if kind == "epsilon" else (z - signal * clean) / noise
        z = left[b].sqrt() * clean + (1 - left[b]).sqrt() * eps
    return z


def make_diffusers(out):
    from diffusers import DDPMScheduler, UNet2DModel
    from safetensors.torch import load_file, save_file
    for name, options in NETWORKS.items():
        torch.manual_seed(len(name))
        config = {**BASE, **options}
        model, folder = UNet2DModel(**config).eval(), f"{out}/diffusers-{name}"
        shutil.rmtree(folder, ignore_errors=True)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(0.1 * torch.randn_like(p) * (p.abs().mean() + 0.1))
        model.save_pretrained(folder + "/unet", safe_serialization=name != "blocks")
        scheduler = DDPMScheduler(**SCHEDULERS.get(name, {}))
        scheduler.save_pretrained(folder + "/scheduler")
        last = scheduler.config.num_train_timesteps - 1
        x, t = torch.randn(3, config["in_channels"], 8, 8), torch.tensor([0, last // 3, last])
        label = torch.tensor([0, 3, 4]) if "class" in name else None
        with torch.no_grad():
            np.save(folder + "/out.npy", model(x, t, class_labels=label).sample.numpy())
        times = np.linspace(last - last // 50, last // 100, 6).round().astype(np.int64)
        np.save(folder + "/ddim20.npy", walk(model, scheduler, x.double(), times, label).float().numpy())
        np.save(folder + "/ddim20_timesteps.npy", times)
        np.save(folder + "/x.npy", x.numpy())
        np.save(folder + "/timestep.npy", t.numpy())
        if label is not None:
            np.save(folder + "/label.npy", label.numpy())
        if name == "heads":  # as old files are: other names, keys left out
            path, config_path = folder + "/unet/diffusion_pytorch_model.safetensors", folder + "/unet/config.json"
            old = {"to_q.": "query.", "to_k.": "key.", "to_v.": "value.", "to_out.0.": "proj_attn."}
            weights = load_file(path)
            for new_name, old_name in old.items():
                weights = {k.replace(new_name, old_name): v for k, v in weights.items()}
            save_file(weights, path)
            read = json.load(open(config_path))
            json.dump({k: v for k, v in read.items() if k not in LEFT_OUT}, open(config_path, "w"), indent=1)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    make_edm(sys.argv[1])
    make_diffusers(sys.argv[1])
