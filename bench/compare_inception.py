#!/usr/bin/env python3
"""compare_inception.py PSLD [--images N] [--rounds R]: features of N 32 x 32 images by psld and by PyTorch, in turns.

Both have the same (random) weights, resize to 299 x 299 as TensorFlow 1 does, and the same threads. PyTorch runs the
network as published: convolution, batch normalisation and ReLU one after the other, batches of 50. Prints images a second of
each round, the ratio of the best, psld's most memory, and the largest difference of features against the largest value."""
import argparse
import json
import os
import resource
import subprocess
import tempfile
import time

import numpy as np
import torch
import torch.nn.functional as F


class Conv(torch.nn.Module):
    def __init__(self, ci, co, kernel, stride=1, pad=0):
        super().__init__()
        self.conv = torch.nn.Conv2d(ci, co, kernel, stride, pad, bias=False)
        self.bn = torch.nn.BatchNorm2d(co, eps=1e-3)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)), inplace=True)


def mean_pool(x):
    return F.avg_pool2d(x, 3, 1, 1, count_include_pad=False)


class Block(torch.nn.Module):
    """Convolutions by name; `wire` says how they are joined."""

    def __init__(self, convs, wire):
        super().__init__()
        for name, conv in convs.items():
            setattr(self, name, conv)
        self.wire = wire

    def chain(self, x, *names):
        for name in names:
            x = getattr(self, name)(x)
        return x

    def forward(self, x):
        return torch.cat(self.wire(self, x), 1)


def block_a(ci, pooled):
    return Block(
        dict(branch1x1=Conv(ci, 64, 1), branch5x5_1=Conv(ci, 48, 1), branch5x5_2=Conv(48, 64, 5, pad=2),
             branch3x3dbl_1=Conv(ci, 64, 1), branch3x3dbl_2=Conv(64, 96, 3, pad=1),
             branch3x3dbl_3=Conv(96, 96, 3, pad=1), branch_pool=Conv(ci, pooled, 1)),
        lambda b, x: [b.branch1x1(x), b.chain(x, 'branch5x5_1', 'branch5x5_2'),
                      b.chain(x, 'branch3x3dbl_1', 'branch3x3dbl_2', 'branch3x3dbl_3'), b.branch_pool(mean_pool(x))])


def block_b(ci):
    return Block(
        dict(branch3x3=Conv(ci, 384, 3, 2), branch3x3dbl_1=Conv(ci, 64, 1), branch3x3dbl_2=Conv(64, 96, 3, pad=1),
             branch3x3dbl_3=Conv(96, 96, 3, 2)),
        lambda b, x: [b.branch3x3(x), b.chain(x, 'branch3x3dbl_1', 'branch3x3dbl_2', 'branch3x3dbl_3'),
                      F.max_pool2d(x, 3, 2)])


def block_c(ci, w):
    flat, tall = dict(kernel=(1, 7), pad=(0, 3)), dict(kernel=(7, 1), pad=(3, 0))
    return Block(
        dict(branch1x1=Conv(ci, 192, 1), branch7x7_1=Conv(ci, w, 1), branch7x7_2=Conv(w, w, **flat),
             branch7x7_3=Conv(w, 192, **tall), branch7x7dbl_1=Conv(ci, w, 1), branch7x7dbl_2=Conv(w, w, **tall),
             branch7x7dbl_3=Conv(w, w, **flat), branch7x7dbl_4=Conv(w, w, **tall),
             branch7x7dbl_5=Conv(w, 192, **flat), branch_pool=Conv(ci, 192, 1)),
        lambda b, x: [b.branch1x1(x), b.chain(x, 'branch7x7_1', 'branch7x7_2', 'branch7x7_3'),
                      b.chain(x, *[f'branch7x7dbl_{i}' for i in range(1, 6)]), b.branch_pool(mean_pool(x))])


def block_d(ci):
    return Block(
        dict(branch3x3_1=Conv(ci, 192, 1), branch3x3_2=Conv(192, 320, 3, 2), branch7x7x3_1=Conv(ci, 192, 1),
             branch7x7x3_2=Conv(192, 192, (1, 7), pad=(0, 3)), branch7x7x3_3=Conv(192, 192, (7, 1), pad=(3, 0)),
             branch7x7x3_4=Conv(192, 192, 3, 2)),
        lambda b, x: [b.chain(x, 'branch3x3_1', 'branch3x3_2'),
                      b.chain(x, *[f'branch7x7x3_{i}' for i in range(1, 5)]), F.max_pool2d(x, 3, 2)])


def block_e(ci, pool):
    def wire(b, x):
        one, two = b.branch3x3_1(x), b.chain(x, 'branch3x3dbl_1', 'branch3x3dbl_2')
        return [b.branch1x1(x), b.branch3x3_2a(one), b.branch3x3_2b(one), b.branch3x3dbl_3a(two), b.branch3x3dbl_3b(two),
                b.branch_pool(pool(x))]
    flat, tall = dict(kernel=(1, 3), pad=(0, 1)), dict(kernel=(3, 1), pad=(1, 0))
    return Block(
        dict(branch1x1=Conv(ci, 320, 1), branch3x3_1=Conv(ci, 384, 1), branch3x3_2a=Conv(384, 384, **flat),
             branch3x3_2b=Conv(384, 384, **tall), branch3x3dbl_1=Conv(ci, 448, 1),
             branch3x3dbl_2=Conv(448, 384, 3, pad=1), branch3x3dbl_3a=Conv(384, 384, **flat),
             branch3x3dbl_3b=Conv(384, 384, **tall), branch_pool=Conv(ci, 192, 1)), wire)


class Inception(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.Conv2d_1a_3x3, self.Conv2d_2a_3x3 = Conv(3, 32, 3, 2), Conv(32, 32, 3)
        self.Conv2d_2b_3x3, self.Conv2d_3b_1x1 = Conv(32, 64, 3, pad=1), Conv(64, 80, 1)
        self.Conv2d_4a_3x3 = Conv(80, 192, 3)
        self.Mixed_5b, self.Mixed_5c, self.Mixed_5d = block_a(192, 32), block_a(256, 64), block_a(288, 64)
        self.Mixed_6a, self.Mixed_6b, self.Mixed_6c = block_b(288), block_c(768, 128), block_c(768, 160)
        self.Mixed_6d, self.Mixed_6e, self.Mixed_7a = block_c(768, 160), block_c(768, 192), block_d(768)
        self.Mixed_7b, self.Mixed_7c = block_e(1280, mean_pool), block_e(2048, lambda x: F.max_pool2d(x, 3, 1, 1))
        self.fc = torch.nn.Linear(2048, 1008)

    def forward(self, x):
        x = self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x)))
        x = self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(F.max_pool2d(x, 3, 2)))
        x = F.max_pool2d(x, 3, 2)
        for name in ('5b', '5c', '5d', '6a', '6b', '6c', '6d', '6e', '7a', '7b', '7c'):
            x = getattr(self, 'Mixed_' + name)(x)
        return x.mean((2, 3))


def resize(x, size=299):
    """Bilinear as TensorFlow 1: pixel j lies at j in / out."""
    at = torch.arange(size) * (x.shape[-1] / size)
    low = at.floor().long()
    high, share = (low + 1).clamp(max=x.shape[-1] - 1), (at - low).float()
    x = x[..., low] * (1 - share) + x[..., high] * share
    return x[..., low, :] * (1 - share)[:, None] + x[..., high, :] * share[:, None]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('psld')
    parser.add_argument('--images', type=int, default=200)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--legacy', action='store_true', help='write the weights in the container of before 2020')
    options = parser.parse_args()
    torch.manual_seed(0)
    net = Inception().eval()
    with torch.no_grad():
        for module in net.modules():
            if isinstance(module, torch.nn.Conv2d):
                torch.nn.init.kaiming_normal_(module.weight)
    images = np.random.default_rng(0).integers(0, 256, (options.images, 3, 32, 32), dtype=np.uint8)
    with tempfile.TemporaryDirectory() as folder:
        weights, data, out = (os.path.join(folder, name) for name in ('inception.pth', 'images.npy', 'features.npy'))
        torch.save(net.state_dict(), weights, _use_new_zipfile_serialization=not options.legacy)
        np.save(data, images)
        command = [options.psld, 'eval', data, '--features-out', out, '--weights', weights, '--json', '--threads',
                   str(torch.get_num_threads())]
        best = {'psld': 0.0, 'torch': 0.0}
        for _ in range(options.rounds):
            seconds = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)['seconds']
            best['psld'] = max(best['psld'], options.images / seconds)
            began, parts = time.perf_counter(), []
            with torch.no_grad():
                for first in range(0, options.images, 50):
                    x = (torch.from_numpy(images[first:first + 50]).float() - 128) / 128
                    parts.append(net(resize(x)).numpy())
            best['torch'] = max(best['torch'], options.images / (time.perf_counter() - began))
            print(f"psld {options.images / seconds:.2f}, PyTorch best so far {best['torch']:.2f} images a second", flush=True)
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        ours, theirs = np.load(out), np.concatenate(parts)
    print(f"{torch.get_num_threads()} threads: psld {best['psld']:.2f}, PyTorch {torch.__version__} {best['torch']:.2f} images a "
          f"second, ratio {best['psld'] / best['torch']:.2f}; psld needed {memory:.0f} MB; features differ by {abs(ours - theirs).max() / abs(theirs).max():.1e}")


if __name__ == '__main__':
    main()
