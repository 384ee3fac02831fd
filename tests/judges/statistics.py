"""scipy and statsmodels compute again what `mulligan stats` says of drawn data sets."""
import concurrent.futures
import json

from judges.support import Row, read_json

JUDGE = "scipy, statsmodels"
NEEDS = ["numpy", "scipy", "statsmodels"]
FAULTS = []

SETS = 200


def drawn(number):
    """One data set, the same for the same number: values by (condition, seed) of one factor, or by two factors for every fourth."""
    import numpy
    random = numpy.random.default_rng(number)
    seeds = int(random.integers(3, 13))
    two = number % 4 == 3
    names = [(a, b) for a in "ab" for b in ("x", "y")] if two else [(c,) for c in "abc"[:int(random.integers(2, 4))]]
    of_seed = random.normal(0, random.uniform(0.001, 0.02), seeds)
    noise = (lambda n: random.exponential(0.01, n)) if number % 3 == 0 else (lambda n: random.normal(0, random.uniform(0.002, 0.02), n))
    return names, {name: 1.07 + random.normal(0, 0.01) + of_seed + noise(seeds) for name in names}


def ours(context, number):
    names, values = drawn(number)
    runs = []
    for name in names:
        for seed, value in enumerate(values[name]):
            run = context.scratch / str(number) / f"{''.join(name)}{seed}"
            run.mkdir(parents=True)
            levels = "".join(f'{key} = "{level}"  # --set\n' for key, level in zip(("lr", "width"), name))
            (run / "config.toml").write_text(f"[run]\nseed = {seed}  # --set\n[train]\n{levels}")
            (run / "result.json").write_text(json.dumps({"val_bpb": float(value), "val_tokens": 1, "val_bytes": 1}))
            runs.append(run)
    context.mulligan("stats", *runs, "--json", f"{number}.json")
    return number, read_json(context.scratch / f"{number}.json")


class Worst:
    """Largest difference of each kind, relative where numbers are above 1, and how many were compared."""

    def __init__(self):
        self.of, self.count, self.squares = {}, {}, {}

    def see(self, kind, mine, theirs, scale=None):
        scale = scale or max(1.0, abs(theirs))
        self.of[kind] = max(self.of.get(kind, 0.0), abs(mine - theirs) / scale)
        self.count[kind] = self.count.get(kind, 0) + 1
        self.squares[kind] = self.squares.get(kind, 0.0) + ((mine - theirs) / scale) ** 2

    def rms(self, kind):
        return (self.squares.get(kind, 0.0) / max(1, self.count.get(kind, 0))) ** 0.5

    def row(self, kind, bound, note=""):
        worst = self.of.get(kind)
        if worst is None:
            return Row(kind, "nothing was compared", f"{bound:g}", None)
        return Row(f"{kind}: {self.count[kind]} figures{note}", f"{worst:.1e}", f"{bound:g}", worst <= bound)


def compare(number, said, worst):
    import numpy
    import scipy.stats
    import statsmodels.stats.multitest
    names, values = drawn(number)
    order = [values[name] for name in names]
    for condition, sample in zip(said["conditions"], order):
        low, high = scipy.stats.t.interval(0.95, len(sample) - 1, sample.mean(), scipy.stats.sem(sample))
        worst.see("t interval", condition["t_interval"][0], low)
        worst.see("t interval", condition["t_interval"][1], high)
        if "bootstrap_bca" in condition:
            many = scipy.stats.bootstrap((sample,), numpy.mean, method="BCa", n_resamples=100000, random_state=1).confidence_interval
            for end, theirs in zip(condition["bootstrap_bca"], many):
                worst.see("bootstrap BCa", end, theirs, many.high - many.low)
    for comparison, sample in zip(said["comparisons"], order[1:]):
        for kind, test in (("welch", scipy.stats.ttest_ind(order[0], sample, equal_var=False)), ("paired", scipy.stats.ttest_rel(order[0], sample))):
            mine, label = comparison[kind], {"welch": "Welch", "paired": "paired t"}[kind]
            worst.see(label, mine["t"], test.statistic)
            worst.see(label, mine["degrees"], test.df)
            worst.see(label, mine["p_two_sided"], test.pvalue)
            interval = test.confidence_interval(0.95)
            worst.see(label, mine["interval"][0], interval.low)
            worst.see(label, mine["interval"][1], interval.high)
    p = [comparison["p"] for comparison in said["comparisons"]]
    for mine, theirs in zip(said["comparisons"], statsmodels.stats.multitest.multipletests(p, method="holm")[1]):
        worst.see("Holm", mine["p_holm"], theirs)


def judge(context):
    import warnings
    warnings.simplefilter("ignore")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda number: ours(context, number), range(SETS)))
    worst = Worst()
    for number, said in results:
        compare(number, said, worst)
    for kind in ("t interval", "Welch", "paired t", "Holm"):
        yield worst.row(kind, 1e-9, f" of {SETS} data sets")
    rms = worst.rms("bootstrap BCa")
    yield Row(f"bootstrap BCa: {worst.count['bootstrap BCa']} ends of intervals, 10,000 resamples here, 100,000 there, of the width: root mean square",
              f"{rms:.1e}; largest {worst.of['bootstrap BCa']:.1e}", "2e-2", rms <= 2e-2)
