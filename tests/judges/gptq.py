"""IST-DASLab's GPTQ, the authors' own file, on the same weights, second moments and grid: their codes against ours. It computes in
f32 and inverts. Here its arithmetic is widened to f64, so that both round the same numbers; its own f32 is counted separately."""
import sys
import types

from judges.support import Row, fetched, plugin_trace

JUDGE = "IST-DASLab/gptq"
NEEDS = ["numpy", "safetensors", "torch", "transformers"]
FAULTS = ["another-damping"]

FILES = {"gptq.py": "bb47468cc2c788577562751de414d76eeb9968ff1c6098e21153557ef3d154c7",
         "quant.py": "211528568b962b868d20fc58b55200b615f41ebd9f36b4d2d7e4a196a095ea5a"}
CASES = [  # rows, columns, bits, clip_sigmas, columns that the layer never sees, descending order
    (96, 128, 6, 13.0, 0, True), (64, 320, 6, 12.0, 0, True), (128, 96, 7, 15.0, 0, True), (48, 200, 4, 3.0, 7, True), (64, 160, 3, 2.5, 0, False)]


def their_module(dtype):
    text = {name: fetched("IST-DASLab/gptq", "HEAD", name, digest).read_text() for name, digest in FILES.items()}
    if text["gptq.py"].count("W = W.float()") != 1:
        raise RuntimeError("their file widens weights elsewhere than it did; look again")
    modules = {}
    for name in ("quant.py", "gptq.py"):
        modules[name] = types.ModuleType(name[:-3])
        sys.modules[name[:-3]] = modules[name]
        program = text[name].replace("W = W.float()", "W = W.to(self.H.dtype)").replace("torch.cuda.synchronize()", "None")
        exec(compile(program, name, "exec"), vars(modules[name]))  # pylint: disable=exec-used
    modules["gptq.py"].print = lambda *_: None
    return modules["gptq.py"], modules["quant.py"], dtype


def their_codes(modules, weight, hessian, scales, qmax, descending):
    """Their class with a symmetric grid of codes from -qmax to qmax."""
    import torch
    gptq, quant, dtype = modules
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    layer.weight.data = weight.to(dtype)
    solver = gptq.GPTQ(layer)
    solver.H = hessian.to(dtype).clone()
    solver.quantizer = quant.Quantizer()
    solver.quantizer.scale, solver.quantizer.zero = scales.to(dtype).reshape(-1, 1), torch.tensor(float(qmax), dtype=dtype)
    solver.quantizer.maxq = torch.tensor(2 * qmax)
    solver.fasterquant(blocksize=32, percdamp=0.01, actorder=descending)
    return torch.round(layer.weight.data / scales.to(dtype).reshape(-1, 1)).to(torch.int8)


def judge(context):
    import safetensors.torch
    import torch
    random = torch.Generator().manual_seed(5)
    for number, (rows, columns, bits, sigmas, unseen, descending) in enumerate(CASES):
        mix = torch.randn(columns, columns, generator=random) * torch.logspace(0, -1, columns)
        inputs = torch.randn(4 * columns, columns, generator=random) @ mix
        inputs[:, :unseen] = 0
        weight = torch.randn(rows, columns, generator=random) * 0.05
        hessian = (inputs.T @ inputs / 4).contiguous()
        files = [context.scratch / f"{number}.{part}.safetensors" for part in ("in", "out")]
        safetensors.torch.save_file({"weight": weight, "hessian": hessian, "grid": torch.tensor([bits, sigmas], dtype=torch.float64)}, files[0])
        damping = 0.02 if context.planted else 0.01
        plugin_trace("quantizer", "gptq", f'damping = {damping}\norder = "{"descending" if descending else "none"}"', *files)
        ours = safetensors.torch.load_file(files[1])
        qmax = 2 ** (bits - 1) - 1
        scales = (sigmas * weight.std(dim=1) / qmax).half().float()
        wide, narrow = (their_codes(their_module(dtype), weight, hessian, scales, qmax, descending) for dtype in (torch.float64, torch.float32))
        differ, in_f32 = (int((codes != ours["codes"]).sum()) for codes in (wide, narrow))
        other_scales = int((scales != ours["scales"]).sum())
        yield Row(f"{rows} x {columns}, {bits} bits, {'descending' if descending else 'natural'} order, {unseen} columns unseen: codes in f64",
                  f"{differ} of {weight.numel()} codes, {other_scales} scales (their f32: {in_f32} codes)", "0",
                  differ == 0 and other_scales == 0)
