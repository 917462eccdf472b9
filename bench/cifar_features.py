#!/usr/bin/env python3
"""Features of CIFAR-10 images by a public ResNet-56 classifier, for distances of small models of such images.

    bench/cifar_features.py resnet56-4bfd9763.th samples.npy features.npy

The images are u8 [n, 3, 32, 32] (.npy, as `psld sample -o` and `psld data -o` write them) or a .tar of PNG files; the
features are the 64 means that the last layer sees. `psld eval a.npy b.npy --metric fid` gives their Frechet distance.
The weights are those of the public repository pytorch_resnet_cifar10 (94 % of the test images are named right).
"""
import io
import sys
import tarfile

import numpy as np
import torch
import torch.nn.functional as F

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
DEVIATION = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)


def load_weights(path):
    state = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
    return {name.removeprefix("module."): value for name, value in state.items()}


def normalise(x, weights, name):
    return F.batch_norm(x, weights[name + ".running_mean"], weights[name + ".running_var"], weights[name + ".weight"],
                        weights[name + ".bias"])


def block(x, weights, name, stride):
    """Two convolutions and a shortcut, which drops pixels and adds empty channels where the size changes."""
    y = F.relu(normalise(F.conv2d(x, weights[name + ".conv1.weight"], stride=stride, padding=1), weights, name + ".bn1"))
    y = normalise(F.conv2d(y, weights[name + ".conv2.weight"], padding=1), weights, name + ".bn2")
    if y.shape != x.shape:
        more = (y.shape[1] - x.shape[1]) // 2
        x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, more, more))
    return F.relu(x + y)


def features(images, weights):
    x = (torch.from_numpy(images).float() / 255 - MEAN) / DEVIATION
    x = F.relu(normalise(F.conv2d(x, weights["conv1.weight"], padding=1), weights, "bn1"))
    for layer in (1, 2, 3):
        for i in range(9):
            x = block(x, weights, f"layer{layer}.{i}", 2 if layer > 1 and i == 0 else 1)
    return x.mean(dim=(2, 3))


def load_images(path):
    if path.endswith(".npy"):
        return np.load(path)
    from PIL import Image
    with tarfile.open(path) as archive:
        members = sorted((m for m in archive if m.name.endswith(".png")), key=lambda m: m.name)
        pixels = [np.asarray(Image.open(io.BytesIO(archive.extractfile(m).read())).convert("RGB")) for m in members]
    return np.ascontiguousarray(np.stack(pixels).transpose(0, 3, 1, 2))


def main():
    weights, images = load_weights(sys.argv[1]), load_images(sys.argv[2])
    with torch.no_grad():
        rows = [features(np.ascontiguousarray(images[i:i + 250]), weights) for i in range(0, len(images), 250)]
    np.save(sys.argv[3], torch.cat(rows).numpy().astype(np.float32))


if __name__ == "__main__":
    main()
