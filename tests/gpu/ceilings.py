"""The device's best rates, as PyTorch measures them: device-to-device copy (bytes read and written) and square matmuls on
random data. Prints one JSON line; each figure is the best of several.

  python3 tests/gpu/ceilings.py --device cuda|cpu [--size 8192] [--copy_bytes 2147483648]
"""
import argparse
import json
import time

import torch


def best_seconds(device, repeats, work):
    """Of one call: timed in runs of 5, which on a GPU follow each other without a pause."""
    best = float("inf")
    for repeat in range(repeats + 1):  # the first warms up
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(5):
            work()
        if device == "cuda":
            torch.cuda.synchronize()
        if repeat:
            best = min(best, (time.perf_counter() - start) / 5)
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--size", type=int, default=8192)
    parser.add_argument("--copy_bytes", type=int, default=2 << 30)
    parser.add_argument("--repeats", type=int, default=5)
    o = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    source = torch.zeros(o.copy_bytes, dtype=torch.uint8, device=o.device)
    target = torch.empty_like(source)
    seconds = best_seconds(o.device, o.repeats, lambda: target.copy_(source))
    result = dict(copy_bytes_per_second=2 * o.copy_bytes / seconds)
    del source, target
    for name, dtype in dict(bf16=torch.bfloat16, fp32=torch.float32).items():
        a, b = (torch.randn(o.size, o.size, device=o.device).to(dtype) for _ in range(2))
        c = torch.empty_like(a)
        seconds = best_seconds(o.device, o.repeats, lambda: torch.matmul(a, b, out=c))
        result[f"{name}_flops_per_second"] = 2 * o.size ** 3 / seconds
    result["device"] = torch.cuda.get_device_name() if o.device == "cuda" else "cpu"
    print(json.dumps({**result, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
