#!/usr/bin/env python3
"""few_steps.py PSLD [--samples N] [--seed S] [--recipes A,B] [--deviation D]: errors of few steps.

Makes a table of docs/measurements/samplers.md. Eight Gaussians of one deviation (0.12) on a ring, exact scores, from the
stationary distribution to t = 1e-3 without a denoising step. The table has the root mean square distance of x, per
coordinate, from the converged flow: of euler-ode and dpm on the grid sqrt, and of collapsed, which follows a flow of its
own, on the grid log."""
import argparse
import os
import subprocess
import tempfile

import numpy as np

MEANS = 1.2 * np.stack([np.cos(np.arange(8) * np.pi / 4), np.sin(np.arange(8) * np.pi / 4)], 1)
DEVIATION = 0.12


def walk(psld, recipe, number, *options, start=None, deviation=DEVIATION):
    """x at the end of a walk, [number, 2]; from states `start` at t = 1 or, without them, from the seed."""
    with tempfile.TemporaryDirectory() as folder:
        model, z, out = (os.path.join(folder, name) for name in ('ring.yaml', 'z.npy', 'out.npy'))
        with open(model, 'w') as file:
            file.write(f'mixture: {{weights: {[0.125] * 8}, means: {MEANS.tolist()}, scales: {[deviation] * 8}}}\nprocess: {recipe}\n')
        if start is not None:
            np.save(z, start.reshape(number, -1))
            options += ('--z0', z)
        subprocess.run([psld, 'sample', model, '-n', str(number), '--no-denoise', '-o', out, *options], check=True,
                       stdout=subprocess.DEVNULL)
        return np.load(out).astype(float).reshape(number, -1)[:, :2]


WAYS = [('euler-ode', 'sqrt', []), *(('dpm', 'sqrt', ['--order', str(order)]) for order in (1, 2, 3)),
        *(('dpm', 'sqrt', ['--order', str(order), '--detail', '0']) for order in (2, 3)), ('collapsed', 'log', ['--order', '3'])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('psld')
    parser.add_argument('--samples', type=int, default=8000)
    parser.add_argument('--seed', default='3')
    parser.add_argument('--recipes', default='vp,cld,psld gamma=0.02,told')
    parser.add_argument('--deviation', type=float, default=DEVIATION)
    o = parser.parse_args()
    print('| recipe | N | euler-ode | dpm 1 | dpm 2 | dpm 3 | dpm 2, detail 0 | dpm 3, detail 0 | collapsed 3 (log) |')
    print('|---|---|---|---|---|---|---|---|---|')
    for recipe in o.recipes.split(','):
        def end(*options):
            return walk(o.psld, recipe, o.samples, '--seed', o.seed, *options, deviation=o.deviation)

        flow = end('--sampler', 'ode', '--tol', '1e-7')
        own = end('--sampler', 'collapsed', '--nfe', '1000')
        for n in (10, 20, 50):
            row = []
            for sampler, grid, options in WAYS:
                x = end('--sampler', sampler, '--grid', grid, '--nfe', str(n), *options)
                row.append(np.sqrt(((x - (own if sampler == 'collapsed' else flow)) ** 2).mean()))
            print(f'| {recipe} | {n} |', ' | '.join(f'{error:.3g}' for error in row), '|', flush=True)


if __name__ == '__main__':
    main()
