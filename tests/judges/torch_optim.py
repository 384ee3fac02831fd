"""torch.optim's optimisers and its schedule of warm restarts, on the same gradients: those of a least-squares problem along torch's own
way, so that both see the same ones at each of 1,000 steps."""
from judges.support import Row, plugin_trace

JUDGE = "torch.optim"
NEEDS = ["numpy", "safetensors", "torch"]
FAULTS = []

STEPS, ROWS, COLUMNS = 1000, 48, 32
CASES = [  # ours, its keys, theirs, its options
    ("adamw", "beta1 = 0.9\nbeta2 = 0.95\neps = 1e-8\nweight_decay = 0.1", "AdamW", dict(betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)),
    ("adamw", "beta1 = 0.0\nbeta2 = 0.999\neps = 1e-10\nweight_decay = 0.0", "AdamW", dict(betas=(0.0, 0.999), eps=1e-10, weight_decay=0.0)),
    ("sgd", "momentum = 0.0\nweight_decay = 0.0", "SGD", {}),
    ("sgd", "momentum = 0.9\nnesterov = true\nweight_decay = 0.0", "SGD", dict(momentum=0.9, nesterov=True)),
    ("sgd", "momentum = 0.9\nnesterov = false\nweight_decay = 0.05\nweight_decay_mode = 'coupled'", "SGD", dict(momentum=0.9, weight_decay=0.05)),
    ("muon", 'momentum = 0.95\nmomentum_warmup_steps = 0\nnesterov = true\nweight_decay = 0.1\ncoefficients = "plain"\niterations = 5\n'
     'row_normalize = false\ncompute_dtype = "fp32"', "Muon", dict(momentum=0.95, nesterov=True, weight_decay=0.1, ns_steps=5)),
]


def muon_in_f32():
    """torch's Muon with the iteration in the gradients' own precision; as it stands it rounds to bf16 whatever they are."""
    import inspect
    import torch.optim._muon as muon
    text = inspect.getsource(muon._zeropower_via_newtonschulz)
    if text.count("dtype=torch.bfloat16") != 1:
        raise RuntimeError("torch.optim.Muon rounds elsewhere than it did; look again")
    scope = dict(vars(muon))
    exec(text.replace("dtype=torch.bfloat16", "dtype=grad.dtype"), scope)  # pylint: disable=exec-used
    muon._zeropower_via_newtonschulz = scope["_zeropower_via_newtonschulz"]


def their_way(name, options, lr, dtype):
    """The start, and of each step the gradient at torch's f32 weights, these weights, and those in `dtype` on the same gradients."""
    import torch
    random = torch.Generator().manual_seed(3)
    a, target = torch.randn(64, COLUMNS, generator=random), torch.randn(64, ROWS, generator=random)
    start = torch.randn(ROWS, COLUMNS, generator=random) * 0.3
    lead, follow = torch.nn.Parameter(start.clone()), torch.nn.Parameter(start.to(dtype).clone())
    both = [(w, getattr(torch.optim, name)([w], lr=lr, **options)) for w in (lead, follow)]
    gradients, plain, weights = [], [], []
    for step in range(STEPS):
        noise = 0.3 * torch.randn(64, ROWS, generator=random)
        gradient = ((a @ lead.detach().T - target + noise).T @ a / 64)
        for w, optimizer in both:
            optimizer.param_groups[0]["lr"] = lr * (1 - 0.9 * step / STEPS)
            w.grad = gradient.to(w.dtype).clone()
            optimizer.step()
        gradients.append(gradient)
        plain.append(lead.detach().double().clone())
        weights.append(follow.detach().double().clone())
    return start, *map(torch.stack, (gradients, plain, weights))


def judge(context):
    import numpy
    import safetensors.torch
    import torch
    muon_in_f32()
    for number, (ours, keys, theirs, options) in enumerate(CASES):
        lr = {"SGD": 0.05, "AdamW": 0.01, "Muon": 0.02}[theirs]
        start, gradients, plain, expected = their_way(theirs, options, lr, torch.float64)
        rates = torch.tensor([lr * (1 - 0.9 * step / STEPS) for step in range(STEPS)], dtype=torch.float64)
        files = [context.scratch / f"{number}.{part}.safetensors" for part in ("in", "out")]
        safetensors.torch.save_file({"initial": start, "gradients": gradients, "lr": rates}, files[0])
        plugin_trace("optimizer", ours, keys, *files)
        seen = safetensors.torch.load_file(files[1])["weights"].double()
        moved = (expected - start.double()).abs().amax(dim=(1, 2))
        worst, theirs_in_f32 = (float(((way - expected).abs().amax(dim=(1, 2)) / moved).max()) for way in (seen, plain))
        said = ", ".join(f"{key} {value}" for key, value in options.items()) or "plain"
        # f32 weights are rounded at each step, torch's as well: closer than that to f64 nothing in f32 can be.
        yield Row(f"{theirs} in f64 ({said}), {STEPS} steps: weights, as a share of the way moved",
                  f"{worst:.1e} (torch in f32: {theirs_in_f32:.1e})", "1e-6, or twice torch's own in f32", worst <= max(1e-6, 2 * theirs_in_f32))
    for period, multiplier in ((100, 1), (70, 2)):
        rates = [float(line) for line in plugin_trace("schedule", "sgdr", f'period = {period}.0\nperiod_multiplier = {multiplier}.0\neta_min = 0.001\n'
                                               'decay = 1.0\nby = "step"', STEPS, 0.1).split()]
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
        schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, period, multiplier, eta_min=0.001)
        expected = []
        for _ in range(STEPS):
            expected.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
        worst = float(numpy.abs(numpy.array(rates) / numpy.array(expected) - 1).max())
        yield Row(f"CosineAnnealingWarmRestarts, T_0 {period}, T_mult {multiplier}: {STEPS} rates, relative", f"{worst:.1e}", "1e-6",
                  worst <= 1e-6 and len(rates) == STEPS)
