#!/usr/bin/env python3
"""compare_frames.py PSLD [--samples N] [--sets S] [--tolerance T] [--recipes A,B]: the integrated frame.

The error that dpm would have in a frame that is integrated. The probability flow is dw = X d rho in the frame
w = R^-1 z, rho = R^-1 mu, R R' = Sigma. psld makes the frame from Sigma at each time. Here
dR/dt = beta (A R + D R^-T) is integrated from the Cholesky factor at t = 1 downwards (DOP853), where errors grow. Eight
Gaussians on a ring, exact scores, grid sqrt to t = 1e-3. The table has the root mean square distance of x from the
converged flow, median and 95 % range over S sets of N samples: of psld's dpm, of dpm with detail 0, and of the same method
in the integrated frame (docs/measurements/samplers.md, the integrated frame). Needs SciPy."""
import argparse
import json
import subprocess

import numpy as np
from scipy.integrate import solve_ivp

from few_steps import DEVIATION, MEANS, walk

BUDGETS = (20, 50)


def grid(n):
    return np.linspace(1, np.sqrt(1e-3), n + 1) ** 2


def clean(y, sigma):
    """E[x_0 | x_0 + sigma n = y] of the mixture."""
    v = DEVIATION ** 2 + sigma ** 2
    p = -((y[:, None] - MEANS) ** 2).sum(2) / (2 * v)
    p = np.exp(p - p.max(1, keepdims=True))
    return (DEVIATION ** 2 * y + sigma ** 2 * (p / p.sum(1, keepdims=True)) @ MEANS) / v


class Process:
    def __init__(self, psld, line):
        self.psld, self.line = psld, line
        about = self.about([1.0])
        self.k, beta = about['k'], np.broadcast_to(about['beta'], 2)
        square = (self.k, self.k)
        self.D = np.reshape(about['D'], square).astype(float)
        self.scale = np.sqrt([1.0] + list(about['mass']))  # deviations at stationarity
        self.A = -(self.D + np.reshape(about['Q'], square)) / self.scale ** 2
        self.beta = lambda t: beta[0] + (beta[1] - beta[0]) * t

    def about(self, times):
        at = ','.join(repr(float(t)) for t in times)
        return json.loads(subprocess.check_output([self.psld, 'recipe', *self.line.split(), '--at', at, '--json']))

    def kernel(self, times):
        """mu, Cholesky factor of Sigma."""
        rows = [row for first in range(0, len(times), 1000) for row in self.about(times[first:first + 1000])['kernel']]
        return (np.array([np.reshape(row['mean'], (self.k, -1))[:, 0] for row in rows]),
                np.array([np.reshape(row['chol'], (self.k, self.k)) for row in rows]))

    def walk(self, start, *options):
        """x at the end of a walk of psld's."""
        return walk(self.psld, self.line, len(start), '--grid', 'sqrt', *options, start=start)


class IntegratedFrame:
    def __init__(self, process, tolerance):
        k = process.k
        fine = np.linspace(1, np.sqrt(1e-3), 1500) ** 2
        self.times = np.unique(np.clip(np.concatenate([fine, *map(grid, BUDGETS)]), 1e-3, 1).round(15))[::-1]
        self.mu, self.factor = process.kernel(self.times)

        def slope(t, r):
            R = r.reshape(k, k)
            return (process.beta(t) * (process.A @ R + process.D @ np.linalg.inv(R).T)).ravel()

        solved = solve_ivp(slope, (1.0, self.times[-1]), self.factor[0].ravel(), method='DOP853', rtol=tolerance,
                           atol=tolerance / 100, t_eval=self.times)
        if not solved.success:
            raise SystemExit(f'{process.line}: {solved.message}')
        self.R = solved.y.T.reshape(-1, k, k)
        self.rho = np.linalg.solve(self.R, self.mu[:, :, None])[:, :, 0]
        self.lam = np.log(np.linalg.norm(self.rho, axis=1))
        white = np.linalg.solve(self.factor, self.mu[:, :, None])[:, :, 0]
        self.sigma = 1 / np.linalg.norm(white, axis=1)
        # y = sigma^2 mu' Sigma^-1 z
        self.y = np.linalg.solve(self.factor.swapaxes(1, 2), white[:, :, None])[:, :, 0] * self.sigma[:, None] ** 2

    def walk(self, start, n, order):
        index = [int(np.argmin(abs(self.times - t))) for t in grid(n)]
        w, history = np.linalg.solve(self.R[0], start), []
        for i, (a, b) in enumerate(zip(index, index[1:])):
            y = np.einsum('a,nad->nd', self.y[a], self.R[a] @ w)
            history = [clean(y, self.sigma[a])] + history[:order - 1]
            nodes = [self.lam[index[i - j]] for j in range(len(history))]
            middle, move = (self.lam[a:b] + self.lam[a + 1:b + 1]) / 2, np.diff(self.rho[a:b + 1], axis=0)
            for j, x in enumerate(history):
                share = np.ones_like(middle)
                for m, node in enumerate(nodes):
                    if m != j:
                        share = share * (middle - node) / (nodes[j] - node)
                w = w + (share @ move)[None, :, None] * x[:, None]
        return (self.R[index[-1]] @ w)[:, 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('psld')
    parser.add_argument('--samples', type=int, default=400)
    parser.add_argument('--sets', type=int, default=50)
    parser.add_argument('--tolerance', type=float, default=1e-10)
    parser.add_argument('--recipes', default='cld,psld gamma=0.02,told')
    options = parser.parse_args()

    def spread(x, truth):
        errors = np.sqrt(((x - truth) ** 2).reshape(options.sets, -1).mean(1))
        return '{:.2g} [{:.2g}, {:.2g}]'.format(np.median(errors), *np.quantile(errors, [0.025, 0.975]))

    print('| recipe | N | order | dpm | detail 0 | integrated frame |\n|---|---|---|---|---|---|')
    for line in options.recipes.split(','):
        process = Process(options.psld, line)
        frame = IntegratedFrame(process, options.tolerance)
        shape = (options.sets * options.samples, process.k, 2)
        start = np.random.default_rng(1).standard_normal(shape) * process.scale[:, None]
        truth = process.walk(start, '--sampler', 'dpm', '--order', '3', '--nfe', '1500')
        for n in BUDGETS:
            for order in (1, 2, 3):
                dpm = ['--sampler', 'dpm', '--order', str(order), '--nfe', str(n)]
                ends = [process.walk(start, *dpm), process.walk(start, *dpm, '--detail', '0'), frame.walk(start, n, order)]
                print('|', ' | '.join([line, str(n), str(order)] + [spread(x, truth) for x in ends]), '|', flush=True)


if __name__ == '__main__':
    main()
